/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests: waiting until a process sleeps that has answered and is about to.
 */

#include "perf/process/rest.h"

#include <glib.h>

/* The rest of a process, from when it sleeps. */
static inline void rest_begin(Rest *r, pid_t pid) {
        while (!rest_add(r, pid)) {
                rest_done(r);
                g_usleep(1000);
        }
}

static inline void rest_await(pid_t pid) {
        _cleanup_(rest_done) Rest rest = REST_NULL;

        rest_begin(&rest, pid);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The seccomp filter of a program under the broker: perf_event_open(2) waits for the answer of
 * whoever has the listener, who is also told of landlock_restrict_self(2): a program that has gone
 * into a sandbox must not reach others by way of the broker. Everything else is as it was. System
 * calls of another architecture (a 32-bit program's) go to the kernel.
 */

#include <linux/filter.h>

#include "core/util.h"

typedef struct Filter Filter;

struct Filter {
        struct sock_fprog program;
};

#define FILTER_NULL ((Filter){})

/* -errno: libseccomp cannot make such a filter for this kernel. */
int filter_build(Filter *ret);
void filter_done(Filter *f);

/* For this process and what it starts, for good; sets no_new_privs too. The listener,
 * close-on-exec, or a negative errno: EBUSY, there is a listener already. Async-signal-safe. */
int filter_install(const Filter *f);

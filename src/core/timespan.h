/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Time spans as systemd.time(7) writes them, down to microseconds: "5s", "2min 30s", "500ms",
 * "1.5h", "infinity". A plain number is seconds.
 */

#include "core/util.h"

#define TIMESPAN_INFINITY UINT64_MAX

/* -EINVAL: not a time. -ERANGE: too long. */
int timespan_parse(const char *text, uint64_t *ret_usec);

/* For people: "250us", "12ms", "1.5s", "2min 3s", "4h 5min", "3d 2h"; "infinity" for
 * TIMESPAN_INFINITY. The caller frees it. NULL: no memory. */
char *timespan_format(uint64_t usec);

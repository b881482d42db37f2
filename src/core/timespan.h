/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Time spans as systemd.time(7) writes them, up to weeks: "5s", "2min 30s", "500ms", "1.5h",
 * "infinity". A plain number is seconds.
 */

#include "core/util.h"

#define TIMESPAN_INFINITY UINT64_MAX

/* -EINVAL: not a time. -ERANGE: too long. */
int timespan_parse(const char *text, uint64_t *ret_usec);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lengths of time as systemd spells them (systemd.time(7)): "5s", "2min 30s", "1.5h", "500ms", "infinity"; a number
 * without a unit is in seconds.
 */

#include "core/refusal.h"

#define TIMESPAN_INFINITY UINT64_MAX

/* In microseconds. REFUSAL_INVALID_ARGS: names what is wrong with it. */
int timespan_parse(const char *text, uint64_t *ret_usec, Refusal *why);

#define TIMESPAN_TEXT_MAX 32

/* One number and its unit, in as many digits as one wants to read: "143 µs", "12.3 ms", "2.10 s". */
void timespan_format(uint64_t usec, char text[static TIMESPAN_TEXT_MAX]);

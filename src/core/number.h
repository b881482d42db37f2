/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Numbers as perf takes them in events: 0x1F or 31. A leading 0 means decimal, as in perf.
 */

#include "core/util.h"

/* The whole text must be the number. -EINVAL, -ERANGE past 64 bits. */
int number_parse(const char *text, uint64_t *ret);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which addresses of a breakpoint are user space's.
 */

#include "core/util.h"

/* The highest address that is user space's for certain. With 64 bits that is the end of the lower
 * half. With 32 bits the border depends on the kernel's configuration (CONFIG_VMSPLIT_*,
 * CONFIG_PAGE_OFFSET), so it is the top of this process's own stack. */
uint64_t address_user_max(void);

/* Whether the range is not empty, does not wrap around and ends at max or below. Pure. */
bool address_is_user(uint64_t first, uint64_t length, uint64_t max);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The order in which the events of this machine were opened: the kernel numbers them from 1 up
 * (PERF_EVENT_IOC_ID), and no number is used twice while it is up.
 */

#include "core/util.h"

/* 0: it cannot be told. */
uint64_t event_order(int fd);

/* All that are opened from now on have greater numbers. UINT64_MAX: it cannot be told. */
uint64_t event_order_now(void);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the kernel lets this user open without the service: that depends on
 * kernel.perf_event_paranoid, on capabilities, and on where this process runs (a container's filter
 * may refuse everything).
 */

#include "core/util.h"

/* Whether the kernel lets this process do what the action is for, "sample-own" and so on; of
 * unknown actions, false. */
bool native_allows(const char *action);

/* Whether it lets this process open anything at all. */
bool native_allows_own(void);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A file of COMMAND's own over /proc/sys/kernel/perf_event_paranoid, for programs that read the
 * sysctl and give up before they have tried to open an event (PAPI). The sysctl is as it was, and
 * so is what the kernel permits.
 *
 * The file is mounted in a mount namespace; an ordinary user needs a user namespace for that, in
 * which the user and the group are mapped to themselves.
 */

#include "core/refusal.h"

/* Whether the text is a level from -1 to 4. */
int paranoid_view_check(const char *level, Refusal *why);

/* For this process and what it starts, for good. -errno; the namespaces may have been entered then.
 * Async-signal-safe. */
int paranoid_view_enter(const char *level);

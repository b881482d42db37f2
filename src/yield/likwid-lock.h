/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * LIKWID's lock: where the file is, only the user who owns it may count (likwid-perfctr(1)). Its
 * tools look when they start; monitors that are built on its library look once an interval.
 *
 * So while somebody holds counters the file is his, and afterwards whose it was before. It is
 * changed in place: other programs may have it open. Whose it was is kept in a file too, for a
 * service that crashes; the next one gives it back.
 */

#include "yield/bridge.h"

#define LIKWID_LOCK_PATH "/run/likwid.lock"

/* saved: the file that remembers; NULL: nothing does. */
int likwid_lock_new(const BridgeHost *host, const char *path, const char *saved,
                    uint64_t grace_usec, Bridge **ret);

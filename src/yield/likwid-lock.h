/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * LIKWID's lock: if the file exists, only its owner may count (likwid-perfctr(1)). LIKWID's tools
 * check it when they start, monitors that use its library once an interval.
 *
 * While a user holds counters that user owns the file; afterwards it has its old owner again. The
 * owner is changed in place, because other programs may have the file open. The old owner is
 * recorded in another file: after a crash the next run restores it.
 */

#include "yield/bridge.h"

#define LIKWID_LOCK_PATH "/run/likwid.lock"

/* saved: the path of that record; NULL: none. */
int likwid_lock_new(const BridgeHost *host, const char *path, const char *saved,
                    uint64_t grace_usec, Bridge **ret);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What earlier runs of the service have left in systemd's descriptor store; a part of store.c.
 *
 * Records are those of the newest generation that is complete. Older generations, and incomplete
 * ones, whose run was killed while it restored, are dropped together with it by restore_end(). The
 * state of a newer version of the service is neither read nor dropped.
 */

#include "service/store/store-record.h"

typedef struct Restore Restore;

/* Reads $LISTEN_FDS and unsets it. Records that are damaged or lack descriptors are left out and
 * logged. With RESTORE_CRASHES_MAX runs that crashed there are no records: the state is set aside
 * (set-aside.h), in directory. */
int restore_read(unsigned n_crashed, const char *directory, Restore **ret);
Restore *restore_free(Restore *p); /* systemd keeps everything; returns NULL */
DEFINE_CLEANUP(Restore *, restore_free)

/* The highest generation that there was, 0: none. */
uint32_t restore_generation(const Restore *p);

/* The records of a kind by their ids: *place is 0 at first. NULL: that was all. */
StoreRecord *restore_next(Restore *p, StoreKind kind, size_t *place);

/* Drops everything from systemd's store and frees p. The descriptors are closed at once. Returns
 * NULL. */
Restore *restore_end(Restore *p);

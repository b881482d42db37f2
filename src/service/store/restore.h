/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What earlier runs of the service have left in systemd's descriptor store; a part of store.c.
 *
 * The newest generation that is complete counts. Older ones, and one whose writer was killed before
 * it was complete, are dropped with it in the end. What a newer version of the service has left is
 * neither read nor dropped.
 */

#include "service/store/store.h"

typedef struct Restore Restore;

#define STORE_NAME_MAX   64u
#define STORE_STATE_NAME "state-%" PRIu32
#define STORE_SHELF_NAME "shelf-%" PRIu32 "-%" PRIu64

/* From $LISTEN_FDS, which is unset. Objects that lack something are left out, said in the journal.
 */
int restore_read(Restore **ret);
Restore *restore_free(Restore *p); /* everything stays with systemd */
DEFINE_CLEANUP(Restore *, restore_free)

/* The highest generation that there was, 0: none. */
uint32_t restore_generation(const Restore *p);

StoreRecord *restore_next(Restore *p, StoreKind kind, size_t *place);

/* It is over: taken out of the store, closed at once, freed. Returns NULL. */
Restore *restore_end(Restore *p);

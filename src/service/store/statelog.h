/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A log of records in a memfd. The latest record of a kind and id is the state of that object.
 *
 * One process writes, with plain stores. A record counts once the length of the log covers it, so
 * a writer that is killed leaves all records that it had appended. When most of the log is out of
 * date, the records that count are copied to the other half of the file, and a single store makes
 * that half the log.
 *
 * A record may continue the one before it of the same object, which then counts together with it:
 * so what is added to a large object is written without all that it has already.
 */

#include "core/util.h"

typedef struct StateLog StateLog;
typedef struct StateEntry StateEntry;

#define STATELOG_FORMAT   1u            /* of the file: change it with the layout */
#define STATELOG_AREA_MAX (256ul << 20) /* bytes of each half */

struct StateLog {
        int fd;
        uint8_t *map;
        size_t n_map;
        uint64_t allocated[2]; /* bytes of each half that have memory behind them */
        uint64_t n_garbage;    /* bytes of records that are out of date */
};

/* Added to the kind of a record that continues what was written of the object before. */
#define STATELOG_MORE (1u << 31)

/* A record as it is in the log. A later run reads it: see STATELOG_FORMAT. */
struct StateEntry {
        uint32_t size;    /* of the whole record, a multiple of 8 */
        uint32_t gone;    /* out of date */
        uint32_t kind;    /* StoreKind, with or without STATELOG_MORE */
        uint32_t version; /* of its descriptors */
        uint64_t id;
        uint32_t n_fds;   /* with those of the records that it continues */
        uint32_t n_state; /* bytes */
        uint8_t state[];
};

int statelog_new(uint32_t generation, StateLog **ret);

/* An earlier run's, to be read; owns fd on success. -EBADMSG: not a log. -EPROTONOSUPPORT: a newer
 * version of the service has written it. */
int statelog_open(int fd, StateLog **ret);
StateLog *statelog_free(StateLog *l);
DEFINE_CLEANUP(StateLog *, statelog_free)

uint32_t statelog_generation(const StateLog *l);
bool statelog_is_complete(const StateLog *l);
void statelog_complete(StateLog *l); /* everything was restored: it replaces the one before */

/* Fills in size and gone of entry. ret is the place of the record, never 0. -ENOMEM, -ENOSPC:
 * nothing changed. */
int statelog_append(StateLog *l, const StateEntry *entry, const void *state, uint64_t *ret);

/* Marks the record at that place as out of date. Does nothing for place 0. */
void statelog_forget(StateLog *l, uint64_t place);

/* The next record that is not out of date, or NULL; *place is 0 at first and becomes the record's.
 * A writer that was killed may have left two of one object: the later one counts. */
const StateEntry *statelog_next(const StateLog *l, uint64_t *place);

/* Whether so much is out of date that copying the rest pays. */
bool statelog_is_stale(const StateLog *l);

/* Copies records to the other half: begin, a copy for each place (which becomes the new place),
 * end. On -ENOMEM or -ENOSPC do not call end: the log stays as it was. */
void statelog_copy_begin(StateLog *l);
int statelog_copy(StateLog *l, uint64_t *place);
void statelog_copy_end(StateLog *l);

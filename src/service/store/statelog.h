/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A log of records in a memfd: the latest one of a kind and number is what is known of that object.
 *
 * One process writes, by plain stores; a record counts once the length of the log covers it, so it
 * can be killed at any moment, and what it had written is there. When most of the log is out of
 * date the records that count are copied to the other half of the file, and one store makes that
 * the log.
 */

#include "core/util.h"

typedef struct StateLog StateLog;
typedef struct StateEntry StateEntry;

#define STATELOG_FORMAT   1u            /* of the file; a higher one is not for us to read */
#define STATELOG_AREA_MAX (256ul << 20) /* bytes of each half */

struct StateLog {
        int fd;
        uint8_t *map;
        size_t n_map;
        bool readable_only;
        uint64_t allocated[2]; /* bytes of each half that have memory */
        uint64_t n_garbage;    /* bytes of the log that are out of date */
};

/* One record, as it is in the log; the state follows. */
struct StateEntry {
        uint32_t size; /* of all, a multiple of 8 */
        uint32_t gone; /* out of date */
        uint32_t kind;
        uint32_t version; /* of the descriptors that belong to it */
        uint64_t id;
        uint32_t n_fds;
        uint32_t n_state; /* bytes */
        uint8_t state[];
};

int statelog_new(uint32_t generation, StateLog **ret);

/* An earlier process's, to be read; fd is taken over on success. -EBADMSG: it is no log.
 * -EPROTONOSUPPORT: a newer version's, which is left alone. */
int statelog_open(int fd, StateLog **ret);
StateLog *statelog_free(StateLog *l);
DEFINE_CLEANUP(StateLog *, statelog_free)

uint32_t statelog_generation(const StateLog *l);
bool statelog_is_complete(const StateLog *l);
void statelog_complete(StateLog *l); /* all that the generation before had is in it */

/* size and gone of entry are filled in. ret is the place of the record, never 0. -ENOMEM, -ENOSPC:
 * nothing changed. */
int statelog_append(StateLog *l, const StateEntry *entry, const void *state, uint64_t *ret);

/* The record at that place is out of date; 0: nothing happens. */
void statelog_forget(StateLog *l, uint64_t place);

/* The next record that counts: *place is 0 at first, and is the record's when it returns. NULL:
 * that was all. Two of one object may come when the writer was killed: the later one counts. */
const StateEntry *statelog_next(const StateLog *l, uint64_t *place);

/* Half of the log and more is out of date, and it is worth the while. */
bool statelog_is_stale(const StateLog *l);

/* Copies what counts to the other half: begin, one copy for each place (which becomes the new one),
 * end. -ENOMEM, -ENOSPC: give up, the log is as it was. */
void statelog_copy_begin(StateLog *l);
int statelog_copy(StateLog *l, uint64_t *place);
void statelog_copy_end(StateLog *l);

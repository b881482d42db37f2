/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A hold as the ledger sees it.
 */

#include <sys/queue.h>

#include "core/prioq.h"
#include "core/scope.h"

typedef struct LedgerHold LedgerHold;
typedef struct SlotEntry SlotEntry;

typedef enum LedgerState {
        LEDGER_NONE, /* not in the ledger */
        LEDGER_WAITING,
        LEDGER_ACTIVE,
} LedgerState;

/* A member of the caller's own struct. The caller sets the first three members (the rest zero) and
 * leaves them unchanged while the hold is in the ledger; the scope stays the caller's to free. */
struct LedgerHold {
        Scope scope;
        bool exclusive;
        unsigned counters; /* on each slot; 0: all of them */

        LedgerState state;
        uint64_t seq;                 /* order of arrival, from 1 */
        TAILQ_ENTRY(LedgerHold) list; /* ledger->holds */

        SlotEntry *entries; /* while it waits, one for each slot */
        size_t n_slots;
        size_t n_ready; /* of the entries */
        PrioqNode ready;
};

/* Whether a hold is promised all counters of its slots. */
static inline bool ledger_hold_is_full(const LedgerHold *h) {
        return h->exclusive || h->counters == 0;
}

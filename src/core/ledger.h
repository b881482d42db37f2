/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decides about holds: who is admitted, who waits, and who comes next. Knows no bus, kernel or
 * clock.
 *
 * An exclusive hold overlaps no other active one, its own user's neither. Shared holds live side by
 * side; of those that ask for a number of counters, the sum on each slot stays within the PMU's
 * capacity where that is known. Whoever overlaps with an earlier waiting hold waits too, so nobody
 * is overtaken and nobody starves.
 *
 * Each waiting hold has an entry in the queue of each of its slots, and knows on how many of them
 * it is at the head and fits; when that is all of them it is ready. So admitting and removing a
 * hold costs the same, slot by slot, however many others there are; finding the first of those that
 * are ready costs a logarithm.
 *
 * To build a ledger up again: admit the holds that were active, then those that waited, each in the
 * order of seq.
 */

#include "core/ready.h"
#include "core/slot.h"

typedef struct Ledger Ledger;

enum {
        LEDGER_E_WAITS = 1,  /* stands in the queue now */
        LEDGER_E_WOULD_WAIT, /* and may not; see ledger_blockers() */
        LEDGER_E_TOO_MANY,   /* asks for more counters than a PMU in its scope has */
};

typedef enum LedgerState {
        LEDGER_NONE, /* not in the ledger */
        LEDGER_WAITING,
        LEDGER_ACTIVE,
} LedgerState;

TAILQ_HEAD(LedgerHolds, LedgerHold);

/* Part of the caller's own struct. The caller fills in what is asked for (the rest zero) and leaves
 * it unchanged while the hold is in the ledger; the scope stays the caller's to free. */
struct LedgerHold {
        Scope scope;
        bool exclusive;
        unsigned counters; /* general ones on each slot; 0: all, and every fixed one */

        LedgerState state;
        uint64_t seq;                 /* order of arrival, from 1 */
        TAILQ_ENTRY(LedgerHold) list; /* ledger->holds */
        unsigned *extra;              /* by part of the scope; NULL for one that has all counters */

        SlotEntry *entries; /* while it waits, one for each slot */
        size_t n_slots;
        size_t n_ready; /* of the entries */
        ReadyNode ready;
};

struct Ledger {
        SlotTable slots;
        struct LedgerHolds holds; /* waiting and active, in the order of seq */
        size_t n_active;
        size_t n_waiting;
        size_t n_partial; /* active, with a number of counters */
        Ready ready;      /* waiting, and can be admitted now */
        uint64_t next_seq;
};

void ledger_init(Ledger *l); /* must not be moved afterwards */
void ledger_done(Ledger *l); /* takes out who is still in it */

/* How many general counters each slot of a PMU has, SLOT_UNKNOWN (at first) or SLOT_UNLIMITED.
 * Holds that are active stay so; a waiting one that asks for more than there are now is admitted
 * when nobody else is promised any. Call ledger_next() afterwards. -ENOMEM: nothing changed. */
int ledger_set_capacity(Ledger *l, unsigned pmu, uint64_t counters);

/* The fixed counters that each slot of a PMU has for monitors and holders: not those that the
 * kernel keeps. None at first. -ENOMEM: nothing changed. */
int ledger_set_fixed(Ledger *l, unsigned pmu, uint32_t fixed);

/* 0: active now. LEDGER_E_WAITS: it comes out of ledger_next() when its turn has come. Else, and
 * for -ENOMEM, nothing has changed. */
int ledger_admit(Ledger *l, LedgerHold *h, bool may_wait);

/* Takes an active or waiting hold out; one that is neither: nothing happens. Call ledger_next()
 * afterwards. */
void ledger_remove(Ledger *l, LedgerHold *h);

/* Makes the first of the waiting holds that can be admitted active; NULL when there is none. */
LedgerHold *ledger_next(Ledger *l);

/* The hold's place in the queue, in the worst of its slots: from 1; 0 when it does not wait. */
size_t ledger_position(const LedgerHold *h);

/* Whether no other active hold overlaps. */
bool ledger_is_first(const Ledger *l, const LedgerHold *h);

/* Who is in the way of a hold that waits or was not admitted: calls f for each active hold that it
 * does not go together with and for each waiting one before it that overlaps, in the order of seq.
 * A non-zero return ends the walk and is returned. */
int ledger_blockers(const Ledger *l, const LedgerHold *h,
                    int (*f)(void *userdata, LedgerHold *blocker), void *userdata);

/* More monitors than the promised number accounts for have to yield in this part of an active
 * hold's scope, because somebody else takes so many counters there. Meaningless, and ignored, for a
 * hold that has all counters. */
void ledger_set_extra(Ledger *l, LedgerHold *h, size_t part, unsigned extra);

/* Whether active holds have this demand on any slot of the scope. */
bool ledger_demands(const Ledger *l, const Scope *scope, SlotDemand demand);

/* Whether a hold is promised all counters of its slots. */
static inline bool ledger_hold_is_full(const LedgerHold *h) {
        return h->exclusive || h->counters == 0;
}

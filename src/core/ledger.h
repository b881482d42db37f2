/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decides about holds: which are admitted, which wait, and which comes next. Knows no bus, kernel
 * or clock.
 *
 * An exclusive hold overlaps no other active hold, not even one of its own user. Shared holds may
 * overlap; the numbers of counters that they ask for add up to no more than the PMU's capacity on
 * any slot, where that is known. A hold that overlaps an earlier waiting one waits too, so none is
 * overtaken and none starves.
 *
 * A waiting hold has an entry in the queue of each of its slots, and counts the slots on which it
 * is first and fits. When it does on all of them it is ready. So the cost of admitting or removing
 * a hold depends on its own slots alone, and finding the first ready hold is logarithmic.
 *
 * To rebuild a ledger: admit the holds that were active, then those that waited, each in the order
 * of seq.
 */

#include "core/slot.h"

typedef struct Ledger Ledger;

enum {
        LEDGER_E_WAITS = 1,  /* it is in the queue now */
        LEDGER_E_WOULD_WAIT, /* but may not; see ledger_blockers() */
        LEDGER_E_TOO_MANY,   /* asks for more counters than a PMU in its scope has */
};

TAILQ_HEAD(LedgerHolds, LedgerHold);

struct Ledger {
        SlotTable slots;
        struct LedgerHolds holds; /* waiting and active, in the order of seq */
        size_t n_active;
        size_t n_waiting;
        size_t n_partial; /* active ones that are not full */
        Prioq ready;      /* waiting, can be admitted now; by seq */
        uint64_t next_seq;
};

void ledger_init(Ledger *l); /* must not be moved afterwards */
void ledger_done(Ledger *l); /* removes the holds that are still in it */

/* How many general counters each slot of a PMU has, SLOT_UNKNOWN (the default) or SLOT_UNLIMITED.
 * Active holds stay active; a waiting one that asks for more than there are now is admitted once no
 * other hold is promised any. Call ledger_next() afterwards. -ENOMEM: nothing changed. */
int ledger_set_capacity(Ledger *l, unsigned pmu, uint64_t counters);

/* The fixed counters that each slot of a PMU has for monitors and holders: not those that the
 * kernel keeps. None at first. -ENOMEM: nothing changed. */
int ledger_set_fixed(Ledger *l, unsigned pmu, uint32_t fixed);

/* 0: active now. LEDGER_E_WAITS: ledger_next() returns it later. Otherwise (-ENOMEM too) nothing
 * changed. */
int ledger_admit(Ledger *l, LedgerHold *h, bool may_wait);

/* One of an earlier run, which may have had more counters: an active one stays active, another one
 * waits if it has to. As ledger_admit() otherwise. */
int ledger_admit_again(Ledger *l, LedgerHold *h, bool active);

/* Removes an active or waiting hold; does nothing for any other. Call ledger_next() afterwards. */
void ledger_remove(Ledger *l, LedgerHold *h);

/* Makes the first ready hold active. NULL: there is none. */
LedgerHold *ledger_next(Ledger *l);

/* Its position, from 1, in that queue of its slots where it is last; 0: it does not wait. */
size_t ledger_position(const LedgerHold *h);

/* Whether no other active hold overlaps. */
bool ledger_is_first(const Ledger *l, const LedgerHold *h);

/* Calls f for each hold that keeps h from being active, for none if it is: active ones that
 * conflict and earlier waiting ones that overlap, in the order of seq. A non-zero return of f ends
 * the walk and is returned. */
int ledger_blockers(const Ledger *l, const LedgerHold *h,
                    int (*f)(void *userdata, LedgerHold *blocker), void *userdata);

/* So many counters are missing for the hold on one of its slots, beside those monitors that the
 * last plan has let stay: others use them. As many more monitors must yield there as make room, for
 * as long as a number of counters is promised on the slot to anybody: who was measured beside these
 * monitors when they had yielded needs that too. */
void ledger_add_missing(Ledger *l, LedgerHold *h, unsigned pmu, unsigned cpu, unsigned missing);

/* What that has come to on the slots of an active hold that is not full, to be saved, and what was
 * saved. The slots of its scope are numbered, part by part. */
void ledger_each_extra(const Ledger *l, const LedgerHold *h,
                       void (*f)(void *userdata, size_t number, uint64_t extra), void *userdata);
void ledger_add_extra(Ledger *l, LedgerHold *h, size_t number, uint64_t extra);

/* Whether active holds have this demand on any slot of the scope. */
bool ledger_demands(const Ledger *l, const Scope *scope, SlotDemand demand);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * All yielders, and the one place that makes them yield and resume: it compares the plan with their
 * states, yields before it resumes, and asks all at once.
 *
 * To switch thousands of counters takes the kernel seconds. What yielders_apply() does not get done
 * in one slice goes on from the loop (yielders_go_on()). Until its turn comes a counter that has to
 * yield is asked, and holds wait for it as for any other yielder; one that may resume stays
 * yielded. Each slice does what the latest plan wants: a hold that comes while counters resume
 * finds the rest of them yielded.
 */

#include "core/ledger.h"
#include "yield/yielder.h"

struct Yielders {
        const Ledger *ledger;
        Yielder **yielders;  /* sorted as plan_compute() wants it */
        PlanMonitor **plans; /* of the same */
        size_t n_yielders;
        uint64_t next_seq;
        /* a yielder that was asked has yielded */
        void (*acknowledged)(void *userdata);
        /* change (1 or -1) more of them have yielded, those that are absent left out; may be NULL
         */
        void (*counted)(void *userdata, int change);
        /* there is more to do: yielders_go_on() is to be called, after others had their turn. NULL:
         * all is done at once */
        void (*busy)(void *userdata);
        uint64_t slice_usec; /* CPU time of a slice, in which at least one yielder is told */
        void *userdata;
        unsigned n_gathers;  /* calls of yielders_gather() without yielders_settle() */
        bool unsettled;      /* what yielders_settle() has to do: start fresh ones, */
        bool to_apply;       /* yielders_apply(), for this hold and until then, */
        bool to_acknowledge; /* and tell that one that was asked is gone */
        uint64_t hold, deadline_usec;
};

void yielders_init(Yielders *r, const Ledger *ledger, void (*acknowledged)(void *userdata),
                   void *userdata);
void yielders_done(Yielders *r);

/* Adds y, as the youngest unless its plan has a seq from an earlier run. Where active holds demand
 * it, y starts out yielded (start()). -ENOMEM: nothing changed. */
int yielders_enroll(Yielders *r, Yielder *y);

/* Removes y; if it was asked, that counts as its acknowledgement. */
void yielders_dismiss(Yielders *r, Yielder *y);

/* Gives y another priority and class. yielders_apply() makes it yield and resume accordingly. */
void yielder_rank(Yielder *y, uint32_t priority, PlanClass klass);

/* Makes yielders yield and resume as the ledger's active holds demand. Those that yield are told
 * the number of the hold and deadline_usec (CLOCK_MONOTONIC). ret_n_told (may be NULL): how many
 * they are. -ENOMEM: nothing changed. */
int yielders_apply(Yielders *r, uint64_t hold, uint64_t deadline_usec, size_t *ret_n_told);

/* The next slice. */
void yielders_go_on(Yielders *r);

/* Whether sliced yielders have to yield that have not been told. */
bool yielders_are_busy(const Yielders *r);

/* Whether sliced yielders of the scope may resume that have not been told: what they will take
 * seems to be free as yet. */
bool yielders_are_resuming(const Yielders *r, const Scope *scope);

/* Whether the plan wants of y what is not done yet. */
bool yielder_is_due(const Yielder *y);

/* Who has to yield is computed from all yielders. So when many come or go at once it is computed
 * once: between these two calls, which may be nested, yielders that are enrolled do not start yet
 * (those of every_hold do), yielders_apply() does nothing, and nobody hears of acknowledgements. In
 * between no hold may go on. yielders_settle() makes up for it. -ENOMEM: nothing changed. */
void yielders_gather(Yielders *r);
int yielders_settle(Yielders *r);

/* The longest grace of all: no deadline should be earlier. */
uint64_t yielders_grace(const Yielders *r);

/* Whether there is nobody who could yield. */
void yielder_set_absent(Yielder *y, bool absent);

/* For whoever knows better than the plan: it was yielded in an earlier run, or nobody waits for it.
 */
void yielder_set_state(Yielder *y, YielderState state);

/* y has yielded. Does nothing unless it was asked. */
void yielder_acknowledge(Yielder *y);

/* Calls f (may be NULL) for each yielder that overlaps this scope, was asked and has not answered;
 * returns how many these are. A negative return of f ends the walk and is returned. */
int yielders_asked(const Yielders *r, const Scope *scope,
                   int (*f)(void *userdata, const Yielder *y), void *userdata);

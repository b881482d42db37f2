/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * All who give way, and the one place that tells them to: it compares what the plan wants with what
 * is, yields before it resumes, and asks everybody at once.
 */

#include "core/ledger.h"
#include "yield/yielder.h"

struct Yielders {
        const Ledger *ledger;
        Yielder **yielders;  /* in the plan's order: highest priority first, then oldest */
        PlanMonitor **plans; /* of the same, for plan_compute() */
        size_t n_yielders;
        uint64_t next_seq;
        /* somebody who was asked has given way */
        void (*acknowledged)(void *userdata);
        void *userdata;
};

void yielders_init(Yielders *r, const Ledger *ledger, void (*acknowledged)(void *userdata),
                   void *userdata);
void yielders_done(Yielders *r);

/* From now on y is told. It has its place by its age: it is the youngest, unless its plan has a seq
 * from an earlier run of the service. It starts out yielded (its ops are not called) when the holds
 * that are active now demand it: *ret_yielded says so, and the caller makes it true. -ENOMEM:
 * nothing changed. */
int yielders_enroll(Yielders *r, Yielder *y, bool *ret_yielded);

/* y is told no more; an acknowledgement that was awaited from it is taken as given. */
void yielders_dismiss(Yielders *r, Yielder *y);

/* Yields and resumes whoever the ledger's active holds now demand. Those asked are told which hold
 * is the cause and have until deadline_usec (CLOCK_MONOTONIC). ret_n_told (may be NULL): how many
 * were told to yield. -ENOMEM: nothing changed. */
int yielders_apply(Yielders *r, uint64_t hold, uint64_t deadline_usec, size_t *ret_n_told);

/* How long those who take their time in any case need at most: a deadline that is earlier is no
 * use. */
uint64_t yielders_grace(const Yielders *r);

/* y, which was asked, has given way. An answer that nobody awaits changes nothing. */
void yielder_acknowledge(Yielder *y);

/* Calls f (may be NULL) for each who was asked on account of this scope and has not answered: how
 * many those are. A negative return of f ends the walk and is returned. */
int yielders_asked(const Yielders *r, const Scope *scope,
                   int (*f)(void *userdata, const Yielder *y), void *userdata);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What must be free on a slot for a hold's promise to be true, beside holds that are confirmed
 * already.
 *
 * A hold of N is promised N general counters. A hold of all is promised everything that no other
 * hold was promised by number: the other general counters and every fixed one, at once; several
 * such holds share it. Promises add up: what other holders were promised and have not opened yet
 * must be free too.
 *
 * Some of what holders have open is known, the service opened it. The rest, what they opened by
 * themselves or on processes, can only be bounded from below (promise_explain()). So a promise may
 * be refused that would have been true, but not the other way round.
 */

#include "core/shape.h"

typedef struct Promise Promise;
typedef struct PromiseHidden PromiseHidden;
typedef struct PromiseHolder PromiseHolder;

#define PROMISE_HOLDERS_MAX 64u /* more than any PMU has counters to promise by number */

/* A user with confirmed holds on the slot. */
struct PromiseHolder {
        unsigned number;   /* the sum of what was promised by number */
        bool all;          /* a hold of all */
        CounterUse opened; /* known to be open there, since the first of these holds */
        unsigned perhaps;  /* counters that may be open there besides */
};

/* What holders have open besides what is known, at least. */
struct PromiseHidden {
        unsigned by_number; /* of what they were promised by number */
        Shape open;         /* in all */
};

struct Promise {
        Shape whole;     /* what the PMU has without what the kernel keeps */
        bool again;      /* the hold is measured again: it is that of one of the holders */
        unsigned number; /* else of the hold that is measured; 0: it has all */
        PromiseHidden hidden;
        size_t n_holders;
        PromiseHolder holders[PROMISE_HOLDERS_MAX];
};

/* Taken is what was found taken and is not known to be open. Others, who have no hold there or had
 * it open before theirs, may have as many open; UINT_MAX: nobody knows. False: there are counters
 * that neither they nor the holders can have, and p is unchanged; else sets hidden. */
bool promise_explain(Promise *p, Shape taken, unsigned others);

Shape promise_must_be_free(const Promise *p);

/* What the measured hold is promised where so much was found free. */
Shape promise_of(const Promise *p, Shape found);

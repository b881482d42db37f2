/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "promise.h"

#include <limits.h>

static unsigned minus(unsigned a, unsigned b) {
        return a - MIN(a, b);
}

/* What the holders are known to have open. Of several whose event has the
 * same fixed counter one has it, and the others' events have general counters in its place. */
static CounterUse promise_known(const Promise *p) {
        CounterUse known = {};

        for (size_t i = 0; i < p->n_holders; i++)
                counter_use_add_open(&known, &p->holders[i].opened);
        return known;
}

static Shape promise_opened(const Promise *p) {
        Shape known = promise_known(p).takes;

        return (Shape){ .general = known.general + p->hidden.open.general,
                        .fixed = known.fixed | p->hidden.open.fixed };
}

/* ---- what was promised by number ---- */

/* General counters of the number that are not known to be open. */
static unsigned holder_rest(const PromiseHolder *h) {
        return minus(h->number, h->opened.takes.general);
}

/* What an event takes of such a rest when another one has this fixed counter. */
static unsigned rest_spill(unsigned rest, const CounterUse *opened, unsigned fixed) {
        unsigned spill = opened->spill[fixed];

        return opened->takes.fixed & 1u << fixed && spill != SHAPE_NO_SPILL ? MIN(rest, spill) : 0;
}

/* What the events that have general counters in place of this fixed one take of what was promised
 * by number: all but those of the one who has it, and nobody knows who that is. */
static unsigned promise_spill(const Promise *p, unsigned fixed) {
        unsigned sum = 0, most = 0;

        for (size_t i = 0; i < p->n_holders; i++) {
                const PromiseHolder *h = &p->holders[i];
                unsigned n = rest_spill(holder_rest(h), &h->opened, fixed);

                sum += n;
                most = MAX(most, n);
        }
        return sum - most;
}

/* At the least: who has one fixed counter may lack another one, and their number may be used up by
 * either. */
static unsigned promise_spills(const Promise *p) {
        unsigned most = 0;

        for (unsigned fixed = 0; fixed < SHAPE_FIXED_MAX; fixed++)
                most = MAX(most, promise_spill(p, fixed));
        return most;
}

/* Of all numbers together, that of the measured hold too. */
static unsigned promise_unopened(const Promise *p) {
        unsigned n = p->again ? 0 : p->number;

        for (size_t i = 0; i < p->n_holders; i++)
                n += holder_rest(&p->holders[i]);
        return minus(minus(n, promise_spills(p)), p->hidden.by_number);
}

/* ---- what must be free ---- */

static bool promise_is_full(const Promise *p) {
        bool full = !p->again && p->number == 0;

        for (size_t i = 0; i < p->n_holders; i++)
                full |= p->holders[i].all;
        return full;
}

Shape promise_must_be_free(const Promise *p) {
        Shape must = { .general = promise_unopened(p) }, rest;

        if (!promise_is_full(p))
                return must;
        rest = shape_without(p->whole, promise_opened(p));
        return (Shape){ .general = MAX(must.general, rest.general), .fixed = rest.fixed };
}

Shape promise_of(const Promise *p, Shape found) {
        if (p->number > 0)
                return (Shape){ .general = p->number };
        return shape_without(found, (Shape){ .general = promise_unopened(p) });
}

/* ---- what is not known to be open ---- */

/* Fixed counters for which more than one has an event. */
static uint32_t promise_shared_fixed(const Promise *p) {
        uint32_t any = 0, shared = 0;

        for (size_t i = 0; i < p->n_holders; i++) {
                shared |= any & p->holders[i].opened.takes.fixed;
                any |= p->holders[i].opened.takes.fixed;
        }
        return shared;
}

/* What is surely left of a holder's number: another one may have each of these fixed counters. */
static unsigned holder_rest_least(const PromiseHolder *h, uint32_t shared) {
        unsigned rest = holder_rest(h);

        for (; shared; shared &= shared - 1)
                rest -= rest_spill(rest, &h->opened, (unsigned) __builtin_ctz(shared));
        return rest;
}

/* What of n counters, which are all the holders', is of what they were promised by number, however
 * they have shared these out: a holder may have opened more than their number, and have taken
 * nobody's promise by that. */
static unsigned explain_by_number(const Promise *p, unsigned n) {
        uint32_t shared = promise_shared_fixed(p);
        unsigned beyond = 0, least = n;

        for (size_t i = 0; i < p->n_holders; i++) {
                const PromiseHolder *h = &p->holders[i];
                unsigned rest = holder_rest_least(h, shared);

                beyond += minus(h->perhaps, rest);
                if (h->perhaps > 0)
                        least = MIN(least, rest);
        }
        return MAX(minus(n, beyond), least);
}

bool promise_explain(Promise *p, Shape taken, unsigned others) {
        unsigned n = shape_size(taken), perhaps = 0, own;

        for (size_t i = 0; i < p->n_holders; i++)
                perhaps += MIN(p->holders[i].perhaps, n);
        if (minus(n, others) > perhaps)
                return false;
        own = minus(n, others);
        p->hidden = (PromiseHidden){
                .by_number = explain_by_number(p, minus(own, n - taken.general)),
                .open.general = minus(own, n - taken.general),
                .open.fixed = own == n ? taken.fixed : 0,
        };
        return true;
}

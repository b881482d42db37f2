/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "promise.h"

#include <limits.h>

static unsigned minus(unsigned a, unsigned b) {
        return a - MIN(a, b);
}

/* General counters that a holder was promised by number and is not known to have open. */
static unsigned holder_rest(const PromiseHolder *h) {
        return minus(h->number, h->opened.takes.general);
}

static unsigned promise_unopened(const Promise *p) {
        unsigned n = 0;

        for (size_t i = 0; i < p->n_holders; i++)
                n += holder_rest(&p->holders[i]);
        return minus(n, p->hidden.by_number);
}

static Shape promise_opened(const Promise *p) {
        Shape opened = p->hidden.open;

        opened.general += p->own.takes.general;
        opened.fixed |= p->own.takes.fixed;
        for (size_t i = 0; i < p->n_holders; i++) {
                opened.general += p->holders[i].opened.takes.general;
                opened.fixed |= p->holders[i].opened.takes.fixed;
        }
        return opened;
}

static bool promise_is_full(const Promise *p) {
        bool full = p->number == 0;

        for (size_t i = 0; i < p->n_holders; i++)
                full |= p->holders[i].all;
        return full;
}

Shape promise_must_be_free(const Promise *p) {
        unsigned own = minus(p->number, p->own.takes.general);
        Shape must = { .general = own + promise_unopened(p) }, rest;

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

/* What of n counters, which are all the holders', is of what they were promised by number, however
 * they have shared these out: a holder may have opened more than their number, and have taken
 * nobody's promise by that. */
static unsigned explain_by_number(const Promise *p, unsigned n) {
        unsigned beyond = 0, least = n;

        for (size_t i = 0; i < p->n_holders; i++) {
                const PromiseHolder *h = &p->holders[i];

                beyond += minus(h->perhaps, holder_rest(h));
                if (h->perhaps > 0)
                        least = MIN(least, holder_rest(h));
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

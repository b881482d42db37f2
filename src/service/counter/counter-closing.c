/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-closing.h"

#include "perf/group/group-start.h"

#define AT_ONCE 64u /* events */

/* All but its first n_open parts are closed. */
struct ClosingGroup {
        Group *group;
        size_t n_open;
        uid_t uid;
        QuotaCharge charge;
        TAILQ_ENTRY(ClosingGroup) entry;
};

static bool counter_set_is_closed_later(const CounterSet *set) {
        const Group *g = set->group;

        return g && !set->yielder && !set->handed_out && g->n_parts * g->n_events > AT_ONCE &&
               !group_closes_to_yield(g);
}

void counter_set_close_later(CounterSet *set) {
        Counters *counters = set->counters;
        ClosingGroup *c = counter_set_is_closed_later(set) ? calloc(1, sizeof(ClosingGroup)) : NULL;

        if (!c)
                return;
        *c = (ClosingGroup){ .group = TAKE_PTR(set->group),
                             .uid = set->uid,
                             .charge = set->descriptor_charge };
        c->n_open = c->group->n_parts;
        set->descriptor_charge = (QuotaCharge){};
        if (c->group->wanted)
                group_stop(c->group);
        TAILQ_INSERT_TAIL(&counters->closing, c, entry);
        turn_wait(&counters->end);
}

/* Closes some events of a group, and frees it when they were the last. */
static void closing_group_go_on(Counters *counters, ClosingGroup *c, size_t n_events) {
        for (size_t n = 0; c->n_open > 0 && n < n_events; n += c->group->n_events)
                group_close_part(c->group, --c->n_open);
        if (c->n_open > 0)
                return;
        TAILQ_REMOVE(&counters->closing, c, entry);
        group_free(c->group);
        quota_release(&c->charge);
        free(c);
}

void counters_close_some(Counters *counters) {
        closing_group_go_on(counters, TAILQ_FIRST(&counters->closing), AT_ONCE);
}

bool counters_close_of(Counters *counters, uid_t uid) {
        ClosingGroup *c, *next;
        bool any = false;

        for (c = TAILQ_FIRST(&counters->closing); c; c = next) {
                next = TAILQ_NEXT(c, entry);
                if (c->uid != uid)
                        continue;
                closing_group_go_on(counters, c, SIZE_MAX);
                any = true;
        }
        return any;
}

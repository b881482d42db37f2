/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-closing.h"

#include "perf/group/group.h"

#define CLOSED_AT_ONCE 256u /* events */

/* All but its first n_open parts are closed. */
struct ClosingGroup {
        Group *group;
        size_t n_open;
        QuotaCharge charge;
        TAILQ_ENTRY(ClosingGroup) entry;
};

void counters_close_group(Counters *counters, Group *group, QuotaCharge *charge) {
        bool waits =
                group->n_parts * group->n_events > CLOSED_AT_ONCE && !group_closes_to_yield(group);
        ClosingGroup *c = waits ? calloc(1, sizeof(ClosingGroup)) : NULL;

        if (!c) {
                group_free(group);
                quota_release(charge);
                return;
        }
        *c = (ClosingGroup){ .group = group, .n_open = group->n_parts, .charge = *charge };
        *charge = (QuotaCharge){};
        TAILQ_INSERT_TAIL(&counters->closing, c, entry);
        turn_wait(&counters->end);
}

void counters_close_some(Counters *counters) {
        ClosingGroup *c = TAILQ_FIRST(&counters->closing);

        for (size_t n = 0; c->n_open > 0 && n < CLOSED_AT_ONCE; n += c->group->n_events)
                group_close_part(c->group, --c->n_open);
        if (c->n_open > 0)
                return;
        TAILQ_REMOVE(&counters->closing, c, entry);
        group_free(c->group);
        quota_release(&c->charge);
        free(c);
}

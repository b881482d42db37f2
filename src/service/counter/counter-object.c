/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-object.h"

#include "perf/group/group-open.h"
#include "perf/group/group-pinned.h"
#include "perf/group/group-read.h"

/* Counters that were created or found last are looked up next, often a thousand in one call. */
Counter *counter_find(Counters *counters, uint64_t id) {
        Counter **recent = &counters->recent[id % COUNTERS_RECENT];
        Object *o;

        if (*recent && (*recent)->object.id == id)
                return *recent;
        o = objects_find(&counters->objects, id);
        if (!o)
                return NULL;
        *recent = counter_of_object(o);
        return *recent;
}

Counter *counter_find_path(Counters *counters, const char *path) {
        uint64_t id;

        return object_path_number(path, "counter", &id) ? counter_find(counters, id) : NULL;
}

/* Started, and nothing that it counts has run since: its processes sleep or have ended. */
static bool counter_is_idle(const Counter *c) {
        Reading reading;

        group_sum(c->set->group, c->event, &reading);
        if (reading.enabled == 0)
                group_read(c->set->group, c->event, &reading);
        return reading.enabled == 0;
}

const char *counter_state(const Counter *c) {
        const Group *g = c->set->group;

        if (g->error != 0)
                return "error";
        if (g->yielded)
                return "yielded";
        if (group_is_dropped(g))
                return "error";
        if (!g->wanted)
                return "stopped";
        return counter_is_idle(c) ? "idle" : "counting";
}

void counter_listen(Counter *c, CounterListener *l) {
        LIST_INSERT_HEAD(&c->listeners, l, listeners);
}

void counters_retry_soon(Counters *counters) {
        (void) sd_event_source_set_enabled(counters->retry, SD_EVENT_ON);
}

uint64_t counter_set_number(const CounterSet *set) {
        uint64_t first = UINT64_MAX;
        const Counter *c;

        LIST_FOREACH (c, &set->members, members)
                first = MIN(first, c->object.id);
        return first;
}

bool counter_set_is_closed(const CounterSet *set) {
        return set->group->yielded && group_closes_to_yield(set->group);
}

int counter_sets_open(CounterSet *const *sets, size_t n, Refusal *why) {
        _cleanup_free_ Group **groups = calloc(MAX(n, 1u), sizeof(Group *));
        size_t n_groups = 0;
        bool settles = false;

        if (!groups)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                settles |= group_closes_to_yield(sets[i]->group);
                if (!counter_set_is_closed(sets[i]))
                        groups[n_groups++] = sets[i]->group;
        }
        if (settles)
                store_settle(sets[0]->context->store);
        return groups_open(groups, n_groups, why);
}

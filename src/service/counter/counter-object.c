/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-object.h"

#include "perf/group/group-open.h"
#include "perf/group/group-pinned.h"

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

const char *counter_state(const Counter *c) {
        const Group *g = c->set->group;

        if (g->error != 0)
                return "error";
        if (g->yielded)
                return "yielded";
        if (group_is_dropped(g))
                return "error";
        return g->wanted ? "counting" : "stopped";
}

void counter_listen(Counter *c, CounterListener *l) {
        LIST_INSERT_HEAD(&c->listeners, l, listeners);
}

void counters_retry_soon(Counters *counters) {
        (void) sd_event_source_set_enabled(counters->retry, SD_EVENT_ON);
}

int counter_set_open(CounterSet *set, Refusal *why) {
        if (group_closes_to_yield(set->group))
                store_settle(set->context->store);
        return group_open(set->group, why);
}

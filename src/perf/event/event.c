/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event.h"

#include <string.h>

void event_done(Event *e) {
        free(e->name);
        free(e->unit);
        free(e->label);
        events_free(e->others, e->n_others);
        *e = EVENT_NULL;
}

int event_copy(Event *ret, const Event *e) {
        Event copy = *e;

        copy.name = strdup(e->name);
        copy.unit = strdup(e->unit);
        copy.label = e->label ? strdup(e->label) : NULL;
        copy.others = NULL;
        copy.n_others = 0;
        if (!copy.name || !copy.unit || (e->label && !copy.label) ||
            (e->n_others > 0 && events_copy(e->others, e->n_others, &copy.others) < 0)) {
                event_done(&copy);
                return -ENOMEM;
        }
        copy.n_others = e->n_others;
        *ret = copy;
        return 0;
}

int event_units_cpus(const Event *e, CpuSet *ret) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        int r = cpuset_copy(&cpus, &e->pmu->cpus);

        for (size_t i = 0; i < e->n_others; i++)
                CPU_FOREACH (cpu, &e->others[i].pmu->cpus)
                        r = r < 0 ? r : cpuset_add(&cpus, (unsigned) cpu);
        if (r < 0)
                return r;
        *ret = cpus;
        cpus = CPUSET_NULL;
        return 0;
}

int event_add_other(Event *e, Event *other) {
        Event *others = reallocarray(e->others, e->n_others + 1, sizeof(Event));

        if (!others) {
                event_done(other);
                return -ENOMEM;
        }
        e->others = others;
        others[e->n_others++] = *other;
        *other = EVENT_NULL;
        return 0;
}

Event *events_free(Event *events, size_t n) {
        for (size_t i = 0; events && i < n; i++)
                event_done(&events[i]);
        free(events);
        return NULL;
}

int events_copy(const Event *events, size_t n, Event **ret) {
        Event *copies = calloc(n, sizeof(Event));

        for (size_t i = 0; copies && i < n; i++)
                if (event_copy(&copies[i], &events[i]) < 0)
                        copies = events_free(copies, i);
        *ret = copies;
        return copies ? 0 : -ENOMEM;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-rows.h"

#include "perf/group/group-read.h"

#define PART "(iuustttts)"

/* The counts of detached processes, so that the rows add up. */
static int append_past(sd_bus_message *reply, const Counter *c) {
        const Reading *past = &c->set->group->past[c->event];

        if (past->enabled == 0)
                return 0;
        return sd_bus_message_append(reply, "(iuttts)", -1, 0, past->value, past->enabled,
                                     past->running, quality_name(past->quality));
}

int counter_append_rows(sd_bus_message *reply, const Counter *c) {
        const Group *g = c->set->group;
        int r = sd_bus_message_open_container(reply, 'a', "(iuttts)");

        for (size_t part = 0; part < g->n_parts && r >= 0; part++) {
                const GroupPart *p = &g->parts[part];
                Reading reading;

                group_sum_part(g, c->event, part, &reading);
                r = sd_bus_message_append(reply, "(iuttts)", p->cpu,
                                          (uint32_t) (p->tid > 0 ? p->tid : 0), reading.value,
                                          reading.enabled, reading.running,
                                          quality_name(reading.quality));
        }
        if (r >= 0)
                r = append_past(reply, c);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_part(sd_bus_message *reply, const Counter *c, size_t part) {
        const Group *g = c->set->group;
        const GroupPart *p = &g->parts[part];
        Reading reading;

        group_sum_part(g, c->event, part, &reading);
        return sd_bus_message_append(
                reply, PART, p->cpu, (uint32_t) p->pid, (uint32_t) MAX(p->tid, 0),
                group_part_event(g, part, c->event)->pmu->name, reading.value, reading.enabled,
                reading.running, reading.estimate, quality_name(reading.quality));
}

static int append_past_part(sd_bus_message *reply, const Counter *c) {
        const Reading *past = &c->set->group->past[c->event];

        if (past->enabled == 0)
                return 0;
        return sd_bus_message_append(reply, PART, -1, 0, 0, "", past->value, past->enabled,
                                     past->running, past->estimate, quality_name(past->quality));
}

int counter_append_parts(sd_bus_message *reply, const Counter *c) {
        int r = sd_bus_message_open_container(reply, 'a', PART);

        for (size_t part = 0; part < c->set->group->n_parts && r >= 0; part++)
                r = append_part(reply, c, part);
        if (r >= 0)
                r = append_past_part(reply, c);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

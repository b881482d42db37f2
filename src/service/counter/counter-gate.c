/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-gate.h"

#include "core/clock.h"
#include "perf/group/gate.h"
#include "perf/group/group-start.h"

/* The timer stands at the earliest of what is due. */
static void counters_gate_at(Counters *counters, uint64_t usec) {
        if (usec >= counters->gate_usec)
                return;
        counters->gate_usec = usec;
        (void) sd_event_source_set_time(counters->gate, usec);
        (void) sd_event_source_set_enabled(counters->gate, SD_EVENT_ONESHOT);
}

static void counters_gate_again(void *userdata) {
        counters_gate_at(userdata, now_usec(CLOCK_MONOTONIC) + GATE_AGAIN_USEC);
}

/* What one slice has no time for is due at once in the next one. */
static int counters_gate(sd_event_source *source, uint64_t usec, void *userdata) {
        Counters *counters = userdata;
        uint64_t now = now_usec(CLOCK_MONOTONIC), first = UINT64_MAX;
        CounterSet *set;

        LIST_FOREACH (set, &counters->sets, sets) {
                unsigned due = set->group->gates_due;
                uint64_t again;

                /* a client may have started or stopped them since */
                if (set->handed_out) {
                        set->group->gates_due = 0;
                        continue;
                }
                again = group_gate_again(set->group, now);
                if (again < first)
                        first = again;
                if (set->group->gates_due < due && now_usec(CLOCK_MONOTONIC) > now + SLICE_USEC) {
                        first = now;
                        break;
                }
        }
        counters->gate_usec = UINT64_MAX;
        counters_gate_at(counters, first);
        return 0;
}

int counters_gate_init(Counters *counters) {
        int r = sd_event_add_time(counters->context->event, &counters->gate, CLOCK_MONOTONIC, 0, 1,
                                  counters_gate, counters);

        if (r < 0)
                return r;
        counters->gate_usec = UINT64_MAX;
        gate_on_again(counters_gate_again, counters);
        return sd_event_source_set_enabled(counters->gate, SD_EVENT_OFF);
}

void counters_gate_done(Counters *counters) {
        gate_on_again(NULL, NULL);
        counters->gate = sd_event_source_disable_unref(counters->gate);
}

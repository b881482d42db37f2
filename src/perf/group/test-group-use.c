/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a group takes on each of the PMUs that count its events. */

#include "perf/group/group-use.h"

#include "perf/event/event-parse.h"
#include "perf/pmu/test-model.h"

static Event event_of(const Host *h, const char *string) {
        Refusal why = REFUSAL_NULL;
        Event e = EVENT_NULL;

        if (event_parse(&h->table, string, &e, &why) != 0)
                g_error("%s: %s", string, why.text);
        return e;
}

static Group *group_of(Event event) {
        Event *events = g_malloc0_n(1, sizeof(Event));
        Group *g;

        events[0] = event;
        g_assert_cmpint(group_new(GROUP_CPU, events, 1, &g, NULL), ==, 0);
        return g;
}

static Scope scope_of(const Group *g) {
        Scope scope = SCOPE_NULL;

        for (size_t unit = 0; unit < group_units(g); unit++) {
                const Pmu *pmu = event_on(&g->events[0], unit)->pmu;

                g_assert_cmpint(scope_add(&scope, pmu->index, &pmu->cpus), ==, 0);
        }
        return scope;
}

/* Slots have a counter of their own on the P-cores; the other event takes a general one. */
static void test_each_pmu_is_measured(void) {
        _cleanup_(group_freep) Group *g = NULL;
        _cleanup_(scope_done) Scope scope = SCOPE_NULL;
        _cleanup_free_ CounterUse *uses = NULL;
        Event e, other;
        Host h = {};

        host_boot(&h, "hybrid");
        e = event_of(&h, "cpu_core/config=0x400/");
        other = event_of(&h, "cpu_atom/config=0xc5/");
        g_assert_cmpint(event_add_other(&e, &other), ==, 0);
        g = group_of(e);
        scope = scope_of(g);
        g_assert_cmpint(group_uses(g, &scope, &uses), ==, 0);
        g_assert_cmpuint(scope.n_parts, ==, 2);
        for (size_t i = 0; i < scope.n_parts; i++) {
                bool core = scope.parts[i].pmu == host_pmu(&h, 0)->index;

                g_assert_cmpuint(uses[i].takes.general, ==, !core);
                g_assert_cmpuint(uses[i].takes.fixed, ==,
                                 core ? pmu_fixed_bit(host_pmu(&h, 0), "slots") : 0);
        }
        g_assert_cmpuint(model_n_open(), ==, 0);
        g = group_free(g);
        host_halt(&h);
}

/* What is counted beside it by another PMU takes nothing of this one. */
static void test_events_of_other_pmus(void) {
        _cleanup_(group_freep) Group *g = NULL;
        _cleanup_(scope_done) Scope scope = SCOPE_NULL;
        _cleanup_free_ CounterUse *uses = NULL;
        Event *events = g_malloc0_n(2, sizeof(Event));
        Host h = {};

        host_boot(&h, "intel");
        pmu_table_find(&h.table, "software")->measured = true;
        events[0] = event_of(&h, "branch-misses");
        events[1] = event_of(&h, "task-clock");
        g_assert_cmpint(group_new(GROUP_CPU, events, 2, &g, NULL), ==, 0);
        for (size_t i = 0; i < 2; i++)
                g_assert_cmpint(scope_add(&scope, g->events[i].pmu->index, &h.table.online), ==, 0);
        g_assert_cmpint(group_uses(g, &scope, &uses), ==, 0);
        for (size_t i = 0; i < scope.n_parts; i++)
                g_assert_cmpuint(uses[i].takes.general, ==,
                                 scope.parts[i].pmu == g->events[0].pmu->index);
        g = group_free(g);
        host_halt(&h);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/group-use/each-pmu-is-measured", test_each_pmu_is_measured);
        g_test_add_func("/group-use/events-of-other-pmus", test_events_of_other_pmus);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The plan, with what is measured of PMU and events, on machines that nobody has at hand: what it
 * leaves counting is in no promise's way. */

#include "core/plan.h"
#include "core/promise.h"
#include "perf/pmu/counter-use.h"
#include "perf/pmu/probe.h"
#include "perf/pmu/test-model.h"

#include <string.h>

#define CPU       1u
#define MONITORS  12u
#define HISTORIES 40

typedef struct Desk {
        Host host;
        Pmu *pmu;
        Ledger ledger;
        LedgerHold hold;
        Scope scope;
        size_t n;
        const char *names[MONITORS];
        PlanMonitor monitors[MONITORS];
        PlanMonitor *sorted[MONITORS];
        int fds[MONITORS]; /* of those that go on */
} Desk;

static void desk_open(Desk *d, const char *machine, Shape kernel) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        Shape left;

        *d = (Desk){};
        host_boot(&d->host, machine);
        d->pmu = host_pmu(&d->host, 0);
        left = shape_without(pmu_whole(d->pmu), kernel);
        ledger_init(&d->ledger);
        g_assert_cmpint(ledger_set_capacity(&d->ledger, 0, left.general), ==, 0);
        g_assert_cmpint(ledger_set_fixed(&d->ledger, 0, left.fixed), ==, 0);
        g_assert_cmpint(cpuset_add(&cpus, CPU), ==, 0);
        g_assert_cmpint(scope_add(&d->scope, 0, &cpus), ==, 0);
        g_assert_cmpint(scope_copy(&d->hold.scope, &d->scope), ==, 0);
}

static void desk_close(Desk *d) {
        for (size_t i = 0; i < d->n; i++)
                if (!d->monitors[i].must)
                        model_close(d->fds[i]);
        ledger_done(&d->ledger);
        scope_done(&d->hold.scope);
        scope_done(&d->scope);
        host_halt(&d->host);
}

static void desk_monitor(Desk *d, const char *name) {
        struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE };
        PlanMonitor *m = &d->monitors[d->n];

        model_attr(name, &attr);
        if (d->pmu->type != PERF_TYPE_RAW)
                attr.config |= (uint64_t) d->pmu->type << PERF_PMU_TYPE_SHIFT;
        *m = (PlanMonitor){ .scope = &d->scope, .seq = d->n };
        g_assert_cmpint(counter_use_measure(d->pmu, &attr, &m->use), ==, 0);
        d->names[d->n] = name;
        d->sorted[d->n++] = m;
}

/* Holds so many (0: all); monitors that need not yield go on. How many those are. */
static size_t desk_hold(Desk *d, unsigned counters) {
        size_t n = 0;

        d->hold.counters = counters;
        g_assert_cmpint(ledger_admit(&d->ledger, &d->hold, false), ==, 0);
        g_assert_cmpint(plan_compute(&d->ledger, d->sorted, d->n), ==, 0);
        for (size_t i = 0; i < d->n; i++) {
                const ModelEvent e = { .name = d->names[i], .cpu = CPU };

                if (d->monitors[i].must)
                        continue;
                d->fds[i] = model_open(&e);
                g_assert_cmpint(d->fds[i], >=, 0);
                n++;
        }
        return n;
}

static Shape wants(void *userdata, const Pmu *pmu, unsigned cpu) {
        return *(const Shape *) userdata;
}

static void desk_assert_kept(Desk *d, Shape kernel) {
        const Promise promise = { .whole = shape_without(pmu_whole(d->pmu), kernel),
                                  .number = d->hold.counters };
        Shape promised = promise_must_be_free(&promise);
        _cleanup_(probe_freep) Probe *p = NULL;

        g_assert_cmpint(probe_new(wants, &promised, &p), ==, 0);
        g_assert_cmpint(probe_add(p, d->pmu, &d->scope.parts[0].cpus), ==, 0);
        g_assert_cmpint(probe_look(p, kernel_now_usec()), ==, PROBE_DONE);
        g_assert_true(probe_confirms(p));
        for (size_t i = 0; i < d->n; i++)
                if (!d->monitors[i].must)
                        g_assert_true(model_is_on(d->fds[i]));
}

/* A hold of one beside monitors that have all that the event could use: one of them gives way. */
static void test_one(void) {
        Desk d;

        desk_open(&d, "arm-qemu", SHAPE_NULL);
        for (unsigned i = 0; i < 6; i++)
                desk_monitor(&d, "instructions");
        g_assert_cmpuint(desk_hold(&d, 1), ==, 5);
        desk_assert_kept(&d, SHAPE_NULL);
        desk_close(&d);
}

static void test_fixed_stay(void) {
        Desk d;

        desk_open(&d, "intel", SHAPE_NULL);
        desk_monitor(&d, "instructions");
        desk_monitor(&d, "cycles");
        desk_monitor(&d, "ref-cycles");
        desk_monitor(&d, "ref-cycles");
        desk_monitor(&d, "cycles");
        g_assert_cmpuint(desk_hold(&d, 4), ==, 3);
        desk_assert_kept(&d, SHAPE_NULL);
        desk_close(&d);
}

static void test_kernel_has_cycles(void) {
        Shape kernel = { .fixed = 2 };
        Desk d;

        desk_open(&d, "intel", kernel);
        model_watchdog(true);
        desk_monitor(&d, "cycles");
        desk_monitor(&d, "instructions");
        g_assert_cmpuint(desk_hold(&d, 4), ==, 1);
        g_assert_true(d.monitors[0].must);
        desk_assert_kept(&d, kernel);
        desk_close(&d);
}

static void test_any(gconstpointer machine) {
        static const char *const names[] = { "cycles",     "instructions",  "branches",
                                             "ref-cycles", "long-branches", "long-cycles" };
        const ModelPmu *has = &model_machine(machine)->pmus[0];

        for (unsigned i = 0; i < HISTORIES; i++) {
                bool all = g_test_rand_int_range(0, 6) == 0;
                size_t n_stay;
                Desk d;

                desk_open(&d, machine, SHAPE_NULL);
                for (int n = g_test_rand_int_range(0, (int) MONITORS); n > 0; n--) {
                        const char *name = names[g_test_rand_int_range(0, G_N_ELEMENTS(names))];
                        bool is_long = g_str_has_prefix(name, "long-");

                        if ((strcmp(name, "ref-cycles") == 0 &&
                             !(has->has & MODEL_HW(REF_CPU_CYCLES))) ||
                            (g_str_has_suffix(name, "branches") &&
                             !(has->has & MODEL_HW(BRANCH_INSTRUCTIONS))) ||
                            (is_long && !has->pairs))
                                continue;
                        desk_monitor(&d, name);
                }
                n_stay = desk_hold(
                        &d,
                        all ? 0 : (unsigned) g_test_rand_int_range(1, (int) d.pmu->counters + 1));
                g_assert_true(!all || n_stay == 0);
                desk_assert_kept(&d, SHAPE_NULL);
                desk_close(&d);
        }
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/plan-counters/one-general-monitor-makes-room", test_one);
        g_test_add_func("/plan-counters/fixed-ones-stay", test_fixed_stay);
        g_test_add_func("/plan-counters/what-the-kernel-has-is-no-monitors",
                        test_kernel_has_cycles);
        for (size_t i = 0; i < model_n_machines; i++) {
                g_autofree char *path =
                        g_strdup_printf("/plan-counters/any/%s", model_machines[i].name);

                if (!model_machines[i].pmus[0].takes_all &&
                    (model_machines[i].pmus[0].has & MODEL_HW(INSTRUCTIONS)))
                        g_test_add_data_func(path, model_machines[i].name, test_any);
        }
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The probe on machines that nobody has at hand; test-probe.c has it on breakpoints, and
 * test-probe-changes.c what changes meanwhile. */

#include "perf/pmu/test-probe-stage.h"

/* ---- what is free is confirmed ---- */

static void test_free(gconstpointer name) {
        Host h = {};
        _cleanup_(probe_freep) Probe *p = NULL;
        uint64_t begun;

        host_boot(&h, name);
        p = probe_of(&h, wants_whole, NULL);
        begun = kernel_now_usec();
        g_assert_cmpint(probe_look(p, begun), ==, PROBE_DONE);
        g_assert_true(probe_confirms(p));
        g_assert_false(probe_is_alone(p));
        g_assert_cmpuint(probe_seen_usec(p), >=, begun);
        g_assert_cmpuint(probe_seen_usec(p), <=, kernel_now_usec());
        g_assert_cmpuint(model_n_open(), ==, 0);
        host_halt(&h);
}

static void test_unknown(void) {
        Host h = {};
        _cleanup_(probe_freep) Probe *p = NULL;

        host_boot(&h, "riscv");
        p = probe_of(&h, wants_whole, NULL);
        g_assert_cmpint(probe_look(p, kernel_now_usec()), ==, PROBE_DONE);
        g_assert_false(probe_confirms(p));
        g_assert_true(p->unknown);
        host_halt(&h);
}

/* ---- what is not free is not ---- */

static const struct {
        const char *name, *machine;
        ModelEvent event;
        unsigned n;
        unsigned free;  /* general ones, beside them */
        uint32_t taken; /* fixed ones, in the order of Intel's, or arm64's one */
} strangers[] = {
        { "pins-all", "intel", { "branches", .pinned = true }, 4, 0 },
        { "pins-all-instructions", "arm-qemu", { "instructions", .pinned = true }, 6, 0 },
        { "pins-one", "zen", { "cycles", .pinned = true }, 1, 5 },
        { "counts-one", "zen", { "cycles" }, 1, 5 },
        { "has-its-own", "intel", { "cycles", .pinned = true }, 1, 4, 2 },
        { "has-its-own-and-another", "intel", { "cycles" }, 2, 3, 2 },
        { "has-one-that-is-alone", "intel", { "ref-cycles" }, 1, 4, 4 },
        /* behind a flexible one that waits the kernel tries no other */
        { "shares-one-that-is-alone", "intel", { "ref-cycles" }, 2, 0, 7 },
        { "takes-turns", "zen", { "instructions" }, 9, 0 },
        { "takes-turns-for-fixed-too", "arm", { "cycles" }, 9, 0, 1 },
        { "takes-two-each", "arm", { "long-branches", .pinned = true }, 2, 2 },
        { "runs-with-pinned", "zen", { "cycles", .task = 7, .pinned = true }, 6, 0 },
        { "runs-with-two-pinned",
          "golden-cove",
          { "branches", .task = 7, .pinned = true },
          2,
          6,
          0 },
        { "is-on-the-other-pmu", "hybrid", { "instructions", .cpu = 17 }, 7, 0, 1 },
};

static void test_stranger(gconstpointer data) {
        const unsigned k = GPOINTER_TO_UINT(data), cpu = strangers[k].event.cpu;
        Strangers s = {};
        Shape whole, found;
        const Pmu *pmu;
        Host h = {};

        host_boot(&h, strangers[k].machine);
        pmu = host_pmu(&h, cpu > 15);
        whole = pmu_whole(pmu);
        model_run(cpu, strangers[k].event.task);
        strangers_add(&s, &strangers[k].event, strangers[k].n);

        g_assert_false(confirms(&h, whole, cpu, &found));
        g_assert_cmpuint(found.general, ==, strangers[k].free);
        g_assert_cmphex(whole.fixed & ~found.fixed, ==, strangers[k].taken);
        g_assert_false(confirms_general(&h, strangers[k].free + 1));
        if (strangers[k].free > 0)
                g_assert_true(confirms_general(&h, strangers[k].free));
        for (size_t i = 0; i < s.n; i++)
                g_assert_false(model_is_dropped(s.fds[i]));
        strangers_leave(&s);
        g_assert_true(confirms_general(&h, host_pmu(&h, host_n_pmus(&h) - 1)->counters));
        host_halt(&h);
}

/* At whatever moment it is looked: a rotation puts others behind the probe's own group. */
static void test_turns(gconstpointer group) {
        const ModelEvent e = { "cycles", .cpu = 1 };
        Strangers s = {};
        Host h = {};

        host_boot(&h, "zen");
        strangers_add_group(&s, &e, GPOINTER_TO_UINT(group));
        strangers_add(&s, &e, 7 - GPOINTER_TO_UINT(group));
        for (unsigned i = 0; i < 3000; i++) {
                Shape found;

                g_assert_cmpint(probe_free_now(host_pmu(&h, 0), 1, (Shape){ .general = 1 }, &found),
                                ==, 0);
                g_assert_cmpuint(found.general, ==, 0);
                model_pass(7);
        }
        strangers_leave(&s);
        host_halt(&h);
}

/* ---- busy machines ---- */

static void test_busy(gconstpointer allowed) {
        Host h = {};
        Shape whole;

        host_boot(&h, "zen");
        whole = pmu_whole(host_pmu(&h, 0));
        for (unsigned cpu = 0; cpu < h.machine->n_cpus; cpu++)
                model_run(cpu, 1 + cpu);
        model_put(1, GPOINTER_TO_UINT(allowed));
        for (unsigned i = 0; i < 20; i++) {
                g_assert_true(confirms(&h, whole, 0, NULL));
                model_pass(1300);
        }
        host_halt(&h);
}

/* The task of the service's own CPU is off it just while the service runs there. */
static void test_own_cpu(void) {
        Strangers s = {};
        Host h = {};

        host_boot(&h, "zen");
        for (unsigned cpu = 0; cpu < h.machine->n_cpus; cpu++) {
                model_put(cpu, UINT32_MAX);
                model_run(cpu, 7);
                strangers_add(&s, &(ModelEvent){ "cycles", cpu, 7, .pinned = true }, 6);
                g_assert_false(confirms_general(&h, 1));
                strangers_leave(&s);
                model_run(cpu, 0);
                g_assert_true(confirms_general(&h, 6));
        }
        host_halt(&h);
}

/* Who opens the events for this thread is on the CPU that is looked at, and its task is not. */
static void test_openers_cpu(void) {
        Strangers s = {};
        Host h = {};

        host_boot(&h, "zen");
        model_put(0, UINT32_MAX);
        for (unsigned cpu = 1; cpu < h.machine->n_cpus; cpu++) {
                model_put_opener(cpu);
                model_run(cpu, 7);
                strangers_add(&s, &(ModelEvent){ "cycles", cpu, 7, .pinned = true }, 6);
                g_assert_false(confirms_general(&h, 1));
                strangers_leave(&s);
                g_assert_true(confirms_general(&h, 6));
                model_run(cpu, 0);
        }
        host_halt(&h);
}

static void test_only_cpu(void) {
        Want want = { .shape = { .general = 1 } };
        Strangers s = {};
        Host h = {};

        host_boot(&h, "zen");
        model_put(2, 1u << 2);
        for (unsigned busy = 0; busy < 2; busy++) {
                _cleanup_(probe_freep) Probe *p = probe_of(&h, wants, &want);

                if (busy) {
                        model_run(2, 7);
                        strangers_add(&s, &(ModelEvent){ "cycles", 2, 7, .pinned = true }, 6);
                }
                (void) probe_run(p);
                g_assert_true(probe_is_alone(p));
                g_assert_true(cpu_of(p, 2)->alone);
                g_assert_false(cpu_of(p, 1)->alone);
                g_assert_true(probe_confirms(p) == !busy);
        }
        strangers_leave(&s);
        host_halt(&h);
}

/* All other CPUs are those of tasks of real time: nobody waits there for ever. */
static void test_no_time_elsewhere(void) {
        Want want = { .shape = { .general = 6 } };
        _cleanup_(probe_freep) Probe *p = NULL;
        Host h = {};

        host_boot(&h, "zen");
        model_put(0, UINT32_MAX);
        for (unsigned cpu = 1; cpu < h.machine->n_cpus; cpu++)
                model_hog(cpu, 9);
        p = probe_of(&h, wants, &want);
        g_assert_cmpuint(probe_run(p), <, 2 * KERNEL_ELSEWHERE_USEC);
        g_assert_true(probe_confirms(p));
        g_assert_true(probe_is_alone(p));
        host_halt(&h);
}

/* Counters that a sibling thread makes unusable are there when a group is validated. */
static void test_blocked(void) {
        Host h = {};
        Shape found;

        host_boot(&h, "intel");
        model_block(1, 2);
        g_assert_false(confirms(&h, pmu_whole(host_pmu(&h, 0)), 1, &found));
        g_assert_cmpuint(found.general, ==, 2);
        host_halt(&h);
}

/* All is free there, and is found so at once. */
static void test_dozing(void) {
        _cleanup_(probe_freep) Probe *p = NULL;
        Host h = {};

        host_boot(&h, "intel");
        model_doze(1);
        p = probe_of(&h, wants_whole, NULL);
        g_assert_cmpint(probe_look(p, kernel_now_usec()), ==, PROBE_DONE);
        g_assert_true(probe_confirms(p));
        g_assert_cmpuint(model_n_open(), ==, 0);
        host_halt(&h);
}

/* ---- histories ---- */

#define HISTORIES 300

/* What is left when all who count now are to be on at once: the promise as design.md has it, by
 * counting them. */
typedef struct Census {
        unsigned general, cycles;
} Census;

static void census_add(Census *c, const char *name, unsigned n) {
        if (strcmp(name, "cycles") == 0 && c->cycles == 0 && n > 0) {
                c->cycles = 1;
                n--;
        }
        c->general += n;
}

static void history(void) {
        Census census[4] = {};
        Strangers s = {};
        unsigned wanted;
        bool all_free = true;
        Host h = {};

        host_boot(&h, "arm");
        model_put((unsigned) g_test_rand_int_range(0, 4), UINT32_MAX);
        wanted = (unsigned) g_test_rand_int_range(1, 7);
        for (unsigned cpu = 0; cpu < 4; cpu++) {
                const ModelEvent e = {
                        .name = g_test_rand_bit() ? "cycles" : "instructions",
                        .cpu = cpu,
                        .task = g_test_rand_bit() ? 7 : 0,
                        .pinned = true,
                };
                const ModelEvent f = { .name = g_test_rand_bit() ? "cycles" : "branches",
                                       .cpu = cpu };
                unsigned n = (unsigned) g_test_rand_int_range(0, 5),
                         m = (unsigned) g_test_rand_int_range(0, 5);

                model_run(cpu, g_test_rand_bit() ? 7 : 0);
                if (e.task != 0)
                        model_run(cpu, 7);
                strangers_add(&s, &e, n);
                strangers_add(&s, &f, m);
                census_add(&census[cpu], e.name, n);
                census_add(&census[cpu], f.name, m);
                all_free &= census[cpu].general + wanted <= 6;
        }
        model_pass((uint64_t) g_test_rand_int_range(0, 9000));
        g_assert_true(confirms_general(&h, wanted) == all_free);
        for (size_t i = 0; i < s.n; i++)
                g_assert_false(model_is_dropped(s.fds[i]));
        strangers_leave(&s);
        host_halt(&h);
}

static void test_histories(void) {
        for (unsigned i = 0; i < HISTORIES; i++)
                history();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < model_n_machines; i++) {
                g_autofree char *path =
                        g_strdup_printf("/probe-counters/free/%s", model_machines[i].name);

                if (!model_machines[i].pmus[0].takes_all)
                        g_test_add_data_func(path, model_machines[i].name, test_free);
        }
        for (unsigned i = 0; i < G_N_ELEMENTS(strangers); i++) {
                g_autofree char *path =
                        g_strdup_printf("/probe-counters/a-stranger-%s", strangers[i].name);

                g_test_add_data_func(path, GUINT_TO_POINTER(i), test_stranger);
        }
        g_test_add_func("/probe-counters/without-validation-nothing-is-confirmed", test_unknown);
        g_test_add_data_func("/probe-counters/seven-take-turns", GUINT_TO_POINTER(1), test_turns);
        g_test_add_data_func("/probe-counters/a-group-and-others-take-turns", GUINT_TO_POINTER(4),
                             test_turns);
        g_test_add_data_func("/probe-counters/busy-is-not-taken", GUINT_TO_POINTER(UINT32_MAX),
                             test_busy);
        g_test_add_data_func("/probe-counters/busy-is-not-taken-with-one-cpu-to-be-on",
                             GUINT_TO_POINTER(1u << 1), test_busy);
        g_test_add_func("/probe-counters/the-own-cpu-is-seen-from-another", test_own_cpu);
        g_test_add_func("/probe-counters/the-openers-cpu-is-seen-without-it", test_openers_cpu);
        g_test_add_func("/probe-counters/without-another-it-says-so", test_only_cpu);
        g_test_add_func("/probe-counters/without-time-elsewhere-it-says-so",
                        test_no_time_elsewhere);
        g_test_add_func("/probe-counters/blocked-counters-are-not-free", test_blocked);
        g_test_add_func("/probe-counters/a-cpu-that-starts-nothing-is-woken", test_dozing);
        g_test_add_func("/probe-counters/histories", test_histories);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/pmu/test-model.h"

static void assert_measured(const Host *h) {
        for (unsigned i = 0; i < host_n_pmus(h); i++) {
                Pmu *pmu = host_pmu(h, i);
                g_autofree char *fixed = NULL;

                g_assert_cmpint(capacity_measure(&h->table, pmu), ==, 0);
                fixed = fixed_names(pmu);
                g_test_message("%s, %s: %u and %s, by %s", h->machine->name, pmu->name,
                               pmu->counters, fixed, pmu->probed);
                g_assert_cmpuint(pmu->counters, ==, h->machine->expected[i].counters);
                g_assert_cmpstr(fixed, ==, h->machine->expected[i].fixed);
                g_assert_true(pmu->measured == (pmu->counters > 0));
                g_assert_true((*pmu->probed != '\0') == pmu->measured);
        }
}

static void test_machine(gconstpointer name) {
        Host h = {};

        host_boot_only(&h, name);
        assert_measured(&h);
        assert_measured(&h);
        g_assert_cmpuint(model_n_open(), ==, 0);
        host_halt(&h);
}

/* Groups are validated against an empty PMU, and none of them ever counts. */
static void test_beside_others(gconstpointer name) {
        Host h = {};
        int fds[40];

        host_boot_only(&h, name);
        model_watchdog(true);
        for (unsigned i = 0; i < G_N_ELEMENTS(fds); i++) {
                const ModelEvent e = { .name = i % 3 > 0 ? "instructions" : "cycles",
                                       .cpu = i % 2,
                                       .task = i / 20,
                                       .pinned = i % 4 == 0 };

                model_run(i % 2, 1);
                fds[i] = model_open(&e);
                g_assert_cmpint(fds[i], >=, 0);
        }
        assert_measured(&h);
        for (unsigned i = 0; i < G_N_ELEMENTS(fds); i++)
                model_close(fds[i]);
        host_halt(&h);
}

static void test_harm(void) {
        const ModelEvent e = { .name = "instructions", .cpu = 0, .task = 7, .pinned = true };
        Host h = {};
        int fds[4];

        host_boot_only(&h, "intel");
        model_put(1, UINT32_MAX);
        model_run(0, 7);
        for (unsigned i = 0; i < G_N_ELEMENTS(fds); i++)
                fds[i] = model_open(&e);
        assert_measured(&h);
        for (unsigned i = 0; i < G_N_ELEMENTS(fds); i++) {
                KernelTimes times;

                g_assert_true(kernel_times(fds[i], &times));
                g_assert_cmpuint(times.running, ==, times.enabled);
                model_close(fds[i]);
        }
        host_halt(&h);
}

static void test_first_cpus_offline(void) {
        Host h = {};

        host_boot_only(&h, "zen");
        model_set_online(0, false);
        model_put(1, UINT32_MAX);
        assert_measured(&h);
        for (unsigned cpu = 1; cpu < h.machine->n_cpus; cpu++)
                model_set_online(cpu, false);
        g_assert_cmpint(capacity_measure(&h.table, host_pmu(&h, 0)), ==, CAPACITY_E_OFFLINE);
        g_assert_false(host_pmu(&h, 0)->measured);
        model_set_online(1, true);
        assert_measured(&h);
        host_halt(&h);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < model_n_machines; i++) {
                const char *name = model_machines[i].name;
                g_autofree char *is = g_strdup_printf("/capacity/of/%s", name);
                g_autofree char *beside = g_strdup_printf("/capacity/beside-others/%s", name);

                g_test_add_data_func(is, name, test_machine);
                if (model_machines[i].pmus[0].has & MODEL_HW(INSTRUCTIONS))
                        g_test_add_data_func(beside, name, test_beside_others);
        }
        g_test_add_func("/capacity/measuring-stops-nobody", test_harm);
        g_test_add_func("/capacity/any-online-cpu-will-do", test_first_cpus_offline);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ReadParts on a hybrid machine: each row names the PMU that counts there. */

#include "service/counter/counter-rows.h"

#include "perf/event/test-fake-sysfs.h"
#include "perf/group/group-cpu.h"
#include "perf/group/group-target.h"
#include "service/bus/test-message.h"

#define PART "(iuustttts)"

typedef struct Stage {
        FakeSysfs sysfs;
        Desert desert;
        CounterSet set;
        Counter counter;
} Stage;

static void stage_up(Stage *s, GroupScope scope) {
        Event *events = g_malloc0_n(1, sizeof(Event));

        s->sysfs = fake_sysfs_of(fixture_tree("intel-hybrid"));
        desert_up(&s->desert);
        events[0] = parse(&s->sysfs, "cycles");
        g_assert_cmpint(group_new(scope, events, 1, &s->set.group, NULL), ==, 0);
        s->counter = (Counter){ .set = &s->set };
}

static void stage_down(Stage *s) {
        group_free(s->set.group);
        desert_down(&s->desert);
        fake_sysfs_done(&s->sysfs);
}

static sd_bus_message *parts_of(const Stage *s) {
        sd_bus_message *m = message_new(&s->desert);

        g_assert_cmpint(counter_append_parts(m, &s->counter), >=, 0);
        (void) message_seal(m);
        g_assert_cmpint(sd_bus_message_enter_container(m, 'a', PART), >, 0);
        return m;
}

static void test_cpus(void) {
        Stage s = {};
        sd_bus_message *m;
        const char *pmu;
        uint32_t pid, tid;
        int32_t cpu;
        unsigned n = 0;

        stage_up(&s, GROUP_CPU);
        g_assert_cmpint(group_add_cpus(s.set.group, &s.sysfs.pmus.online, &s.sysfs.pmus.online), ==,
                        0);
        m = parts_of(&s);
        while (sd_bus_message_read(m, PART, &cpu, &pid, &tid, &pmu, NULL, NULL, NULL, NULL, NULL) >
               0) {
                const Pmu *there = pmu_table_find(&s.sysfs.pmus, pmu);

                g_assert_cmpuint(pid, ==, 0);
                g_assert_cmpuint(tid, ==, 0);
                g_assert_nonnull(there);
                g_assert_true(cpuset_has(&there->cpus, (unsigned) cpu));
                n++;
        }
        g_assert_cmpuint(n, ==, cpuset_count(&s.sysfs.pmus.online));
        sd_bus_message_unref(m);
        stage_down(&s);
}

/* Two threads of two processes of a tree, and what was detached. */
static void test_tree(void) {
        static const pid_t tids[] = { 1000, 1003 }, pids[] = { 1000, 1002 };
        static const char *const pmus[] = { "cpu_core", "cpu_atom" };
        SharedFd process = { .n_refs = 1, .fd = STDIN_FILENO };
        const GroupTarget target = { .pid = 1000, .process = &process, .descendants = true };
        const char *pmu, *quality;
        uint64_t value, estimate;
        uint32_t pid, tid;
        Stage s = {};
        sd_bus_message *m;

        stage_up(&s, GROUP_PROCESS);
        s.set.group->past[0] = (Reading){ .value = 5, .enabled = 2, .running = 1, .estimate = 10 };
        g_assert_cmpint(group_attach(s.set.group, &target, tids, pids, 2), ==, 0);
        m = parts_of(&s);
        for (unsigned i = 0; i < 4; i++) {
                g_assert_cmpint(sd_bus_message_read(m, PART, NULL, &pid, &tid, &pmu, NULL, NULL,
                                                    NULL, NULL, &quality),
                                >, 0);
                g_assert_cmpint((pid_t) pid, ==, pids[i / 2]);
                g_assert_cmpint((pid_t) tid, ==, tids[i / 2]);
                g_assert_cmpstr(pmu, ==, pmus[i % 2]);
                g_assert_cmpstr(quality, ==, "not-counted");
        }
        g_assert_cmpint(sd_bus_message_read(m, PART, NULL, &pid, NULL, &pmu, &value, NULL, NULL,
                                            &estimate, NULL),
                        >, 0);
        g_assert_cmpuint(pid, ==, 0);
        g_assert_cmpstr(pmu, ==, "");
        g_assert_cmpuint(value, ==, 5);
        g_assert_cmpuint(estimate, ==, 10);
        g_assert_cmpint(sd_bus_message_at_end(m, false), >, 0);
        sd_bus_message_unref(m);
        stage_down(&s);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/counter-rows/cpus", test_cpus);
        g_test_add_func("/counter-rows/tree", test_tree);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/pmu/probe.h"

#include "perf/pmu/capacity.h"

#include <sys/resource.h>

#include "perf/group/test-group.h"
#include "perf/process/test-child.h"

/* Slots that another process has, CPU-wide. */
enum { TAKER_ITSELF = -1, TAKER_EVERY_CPU = -2 };

typedef struct Taker {
        int cpu;
        unsigned n;
} Taker;

static void take_of(const Taker *t, int cpu) {
        int fds[SLOTS];

        if (slots_take(cpu, fds, t->n) != t->n)
                _exit(1);
}

static void take(void *userdata) {
        const Taker *t = userdata;

        if (t->cpu != TAKER_EVERY_CPU) {
                take_of(t, t->cpu);
                return;
        }
        CPU_FOREACH (cpu, &sysfs.pmus.online)
                take_of(t, cpu);
}

static Pmu *breakpoints(void) {
        Pmu *pmu = pmu_table_find(&sysfs.pmus, "breakpoint");
        int fd;

        if (machine_lacks(MACHINE_CPU_EVENTS))
                return NULL;
        g_assert_nonnull(pmu);
        if (slots_take(0, &fd, 1) == 0) {
                g_test_skip("all breakpoints are taken");
                return NULL;
        }
        close_fd(fd);
        g_assert_cmpint(capacity_measure(&sysfs.pmus, pmu), ==, 0);
        return pmu;
}

static Shape wants(void *userdata, const Pmu *pmu, unsigned cpu) {
        return (Shape){ .general = *(const unsigned *) userdata };
}

static Probe *probe_of(const Pmu *pmu, const char *list, const unsigned *wanted) {
        _cleanup_(cpuset_done) CpuSet cpus = cpus_of(list);
        Probe *p;

        g_assert_cmpint(probe_new(wants, (void *) wanted, &p), ==, 0);
        g_assert_cmpint(probe_add(p, pmu, &cpus), ==, 0);
        return p;
}

/* All the looks that there are, without waiting between them. */
static void probe_to_end(Probe *p) {
        uint64_t now = 1000;

        while (probe_look(p, now) == PROBE_AGAIN)
                now = p->next_usec;
        g_assert_cmpuint(now, <=, 1000 + PROBE_WATCH_USEC);
}

static unsigned free_now(const Pmu *pmu, unsigned cpu, unsigned wanted) {
        Shape found;

        g_assert_cmpint(probe_free_now(pmu, cpu, (Shape){ .general = wanted }, &found), ==, 0);
        return found.general;
}

/* How many of so many a probe finds free on the first CPU of the list. */
static unsigned found_free(const Pmu *pmu, const char *list, unsigned wanted) {
        _cleanup_(probe_freep) Probe *p = probe_of(pmu, list, &wanted);

        probe_to_end(p);
        g_assert_true(probe_confirms(p) == (p->looks[0].free.general == wanted));
        return p->looks[0].free.general;
}

/* ---- capacity ---- */

static void test_capacity_is_the_number_of_slots(void) {
        unsigned before = count_descriptors();
        Pmu *pmu = breakpoints();

        if (!pmu)
                return;
        g_assert_cmpint(capacity_measure(&sysfs.pmus, pmu), ==, 0);
        g_assert_cmpuint(pmu->counters, ==, SLOTS);
        g_assert_true(pmu->measured);
        g_assert_cmpstr(pmu->probed, ==, "mem:w");
        g_assert_cmpuint(count_descriptors(), ==, before);
}

static void test_capacity_is_the_same_whoever_has_some(void) {
        static const Taker takers[] = {
                { .cpu = 0, .n = SLOTS },
                { .cpu = TAKER_EVERY_CPU, .n = 1 },
                { .cpu = TAKER_EVERY_CPU, .n = SLOTS },
                { .cpu = TAKER_ITSELF, .n = 1 },
                { .cpu = TAKER_ITSELF, .n = SLOTS },
        };
        Pmu *pmu = breakpoints();

        for (size_t i = 0; pmu && i < G_N_ELEMENTS(takers); i++) {
                Taker taker = takers[i];
                pid_t pid = child_start(take, &taker);

                g_assert_cmpint(capacity_measure(&sysfs.pmus, pmu), ==, 0);
                g_assert_cmpuint(pmu->counters, ==, SLOTS);
                child_end(pid);
        }
}

static void test_what_is_never_scarce_is_not_opened(void) {
        static const char *const names[] = { "software", "tracepoint", "uprobe" };

        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
                Pmu *pmu = pmu_table_find(&sysfs.pmus, names[i]);

                if (!pmu)
                        continue;
                g_assert_false(look_can(pmu));
                g_assert_cmpint(capacity_measure(&sysfs.pmus, pmu), ==, 0);
                g_assert_true(pmu->measured);
                g_assert_cmpuint(pmu->counters, ==, 0);
                g_assert_cmpstr(pmu->probed, ==, "");
        }
}

static void test_without_a_cpu_that_is_online_nothing_is_measured(void) {
        _cleanup_(cpuset_done) CpuSet absent = cpus_of("4000");
        Pmu *pmu = breakpoints(), elsewhere;
        Shape found;

        if (!pmu)
                return;
        elsewhere = *pmu;
        elsewhere.cpus = absent;
        g_assert_cmpint(capacity_measure(&sysfs.pmus, &elsewhere), ==, 0);
        pmu->probed = elsewhere.probed;
        g_assert_false(elsewhere.measured);
        g_assert_false(look_can(&elsewhere));
        g_assert_cmpint(probe_free_now(&elsewhere, 0, (Shape){ .general = 1 }, &found), ==,
                        -EOPNOTSUPP);
}

/* ---- what is free now ---- */

static void test_free_is_what_others_have_left(void) {
        Pmu *pmu = breakpoints();

        for (unsigned n = 0; pmu && has_two_cpus() && n <= SLOTS; n++) {
                const unsigned wanted = SLOTS;
                Taker taker = { .cpu = 1, .n = n };
                pid_t pid = child_start(take, &taker);
                _cleanup_(probe_freep) Probe *p = probe_of(pmu, "0-1", &wanted);

                probe_to_end(p);
                g_assert_true(probe_confirms(p) == (n == 0));
                g_assert_cmpuint(p->n_looks, ==, 2);
                g_assert_cmpuint(p->looks[0].cpu, ==, 0);
                g_assert_cmpuint(p->looks[0].free.general, ==, SLOTS);
                g_assert_cmpuint(p->looks[1].cpu, ==, 1);
                g_assert_cmpuint(p->looks[1].free.general, ==, SLOTS - n);
                g_assert_cmpuint(free_now(pmu, 1, SLOTS), ==, SLOTS - n);
                child_end(pid);
        }
}

static void test_no_more_is_tried_than_is_wanted(void) {
        Pmu *pmu = breakpoints();

        if (!pmu)
                return;
        g_assert_cmpuint(found_free(pmu, "0", 2), ==, 2);
        g_assert_cmpuint(found_free(pmu, "0", 1), ==, 1);
        g_assert_cmpuint(found_free(pmu, "0", 9), ==, SLOTS);
        g_assert_cmpuint(free_now(pmu, 0, 3), ==, 3);
        g_assert_cmpuint(free_now(pmu, 0, UINT32_MAX), ==, SLOTS);
}

static void test_probe_leaves_nothing_open(void) {
        unsigned before = count_descriptors();
        const unsigned wanted = SLOTS;
        Pmu *pmu = breakpoints();
        Probe *p;

        if (!pmu)
                return;
        p = probe_of(pmu, "0", &wanted);
        g_assert_cmpint(probe_look(p, 1000), ==, PROBE_DONE);
        g_assert_cmpuint(count_descriptors(), ==, before);
        g_assert_cmpuint(slots_free(0), ==, SLOTS);
        probe_free(p);

        probe_free(probe_of(pmu, "0", &wanted)); /* given up before the first look */
        g_assert_cmpuint(free_now(pmu, 0, SLOTS), ==, SLOTS);
        g_assert_cmpuint(count_descriptors(), ==, before);
        g_assert_null(probe_free(NULL));
}

static void test_probe_disturbs_nobody_who_counts(void) {
        _cleanup_(group_freep) Group *g = NULL;
        Pmu *pmu = breakpoints();
        Reading reading;
        Target s;

        if (!pmu)
                return;
        target_start(&s);
        g = group_on(&s, 2);
        for (unsigned i = 0; i < 20; i++) {
                const unsigned wanted = SLOTS;
                _cleanup_(probe_freep) Probe *p = probe_of(pmu, "0", &wanted);

                target_write(&s, 0, 10, 0);
                g_assert_cmpint(probe_look(p, 1000), ==, PROBE_DONE);
        }
        group_read(g, 0, &reading);
        g_assert_cmpuint(reading.value, ==, hits_never ? 0 : 200);
        g_assert_cmpint(reading.quality, ==, QUALITY_EXACT);
        target_end(&s);
}

/* What is never scarce is confirmed without a look, what nobody can measure never. */
static void test_only_what_can_be_measured_is_looked_at(void) {
        static const struct {
                const char *name;
                bool confirmed;
        } pmus[] = { { "software", true }, { "tracepoint", true }, { "msr", false } };
        const unsigned wanted = 1;

        for (size_t i = 0; i < G_N_ELEMENTS(pmus); i++) {
                Pmu *pmu = pmu_table_find(&sysfs.pmus, pmus[i].name);
                _cleanup_(probe_freep) Probe *p = NULL;
                Shape found;

                if (!pmu)
                        continue;
                g_assert_cmpint(capacity_measure(&sysfs.pmus, pmu), ==, 0);
                p = probe_of(pmu, "0", &wanted);
                g_assert_cmpint(probe_look(p, 1000), ==, PROBE_DONE);
                g_assert_cmpuint(p->n_looks, ==, 0);
                g_assert_true(probe_confirms(p) == pmus[i].confirmed);
                g_assert_cmpuint(probe_seen_usec(p), ==, 0);
                g_assert_cmpint(probe_free_now(pmu, 0, (Shape){ .general = 1 }, &found), ==,
                                -EOPNOTSUPP);
        }
}

/* Having no descriptor left is no proof that somebody has the counters. */
static void test_lack_of_descriptors_is_not_lack_of_counters(void) {
        unsigned before = count_descriptors();
        struct rlimit limit, low;
        Pmu *pmu = breakpoints();
        Probe *p = NULL;
        const unsigned wanted = SLOTS;
        int next, r, now;
        Shape found;

        if (!pmu)
                return;
        g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        next = dup(0);
        close_fd(next);
        low = (struct rlimit){ .rlim_cur = (rlim_t) next + 2, .rlim_max = limit.rlim_max };
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &low), ==, 0);
        p = probe_of(pmu, "0", &wanted);
        r = probe_look(p, 1000);
        now = probe_free_now(pmu, 0, (Shape){ .general = SLOTS }, &found);
        p = probe_free(p);
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        g_assert_cmpint(r, ==, -EMFILE);
        g_assert_cmpint(now, ==, -EMFILE);
        g_assert_null(p);
        g_assert_cmpuint(count_descriptors(), ==, before);
}

int main(int argc, char **argv) {
        static const GroupTest tests[] = {
                { "capacity-is-the-number-of-slots", test_capacity_is_the_number_of_slots },
                { "capacity-is-the-same-whoever-has-some",
                  test_capacity_is_the_same_whoever_has_some },
                { "what-is-never-scarce-is-not-opened", test_what_is_never_scarce_is_not_opened },
                { "without-a-cpu-that-is-online-nothing-is-measured",
                  test_without_a_cpu_that_is_online_nothing_is_measured },
                { "free-is-what-others-have-left", test_free_is_what_others_have_left },
                { "no-more-is-tried-than-is-wanted", test_no_more_is_tried_than_is_wanted },
                { "probe-leaves-nothing-open", test_probe_leaves_nothing_open },
                { "probe-disturbs-nobody-who-counts", test_probe_disturbs_nobody_who_counts },
                { "only-what-can-be-measured-is-looked-at",
                  test_only_what_can_be_measured_is_looked_at },
                { "lack-of-descriptors-is-not-lack-of-counters",
                  test_lack_of_descriptors_is_not_lack_of_counters },
        };

        return group_tests_run(argc, argv, "/probe/", tests, G_N_ELEMENTS(tests));
}

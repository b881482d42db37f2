/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Groups whose events several PMUs count. There is one for breakpoints, so each "PMU" counts
 * another word here.
 */

#include "test-group.h"

/* An event of the first n words. */
static Event event_of_words(unsigned n) {
        g_autofree char *first = word_event(0);
        Event e = parse(&sysfs, first);

        for (unsigned i = 1; i < n; i++) {
                g_autofree char *word = word_event(i);
                Event other = parse(&sysfs, word);

                g_assert_cmpint(event_add_other(&e, &other), ==, 0);
        }
        return e;
}

static Group *group_of_words(GroupScope scope, unsigned n) {
        Event *events = g_malloc0_n(1, sizeof(Event));
        Group *g;

        events[0] = event_of_words(n);
        g_assert_cmpint(group_new(scope, events, 1, &g, NULL), ==, 0);
        return g;
}

static Group *restart(Group *g) {
        _cleanup_(pack_done) Pack p = {};
        int *fds;
        size_t n;
        Group *loaded;

        group_save(g, &p);
        g_assert_false(p.failed);
        g_assert_cmpint(group_save_descriptors(g, (GroupExtent){}, &fds, &n), ==, 0);
        for (size_t i = 0; i < n; i++)
                fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        group_free(g);
        g_assert_cmpint(
                group_load(&(Unpack){ p.data, p.n }, &(Unpack){}, &sysfs.pmus, fds, n, &loaded), ==,
                0);
        free(fds);
        groups_go_on(&loaded, 1);
        return loaded;
}

/* A thread is counted by all of them, for the time that it ran. */
static void test_a_thread_is_one(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of_words(GROUP_PROCESS, 3), *one = NULL;
        Reading sum, single;

        group_start_on(g, &s);
        one = group_on(&s, 1);
        g_assert_cmpuint(g->n_parts, ==, 3);
        for (unsigned word = 0; word < 3; word++)
                target_write(&s, 0, 10 + word, word);
        assert_exact(g, 33);
        group_read(g, 0, &sum);
        group_read(one, 0, &single);
        g_assert_cmpuint(sum.estimate, ==, hits(33));
        g_assert_cmpuint(sum.enabled, <, 2 * single.enabled);
}

static void test_values_go_on(void) {
        _cleanup_(target_done) Target s = target_new(), other = target_new();
        _cleanup_(group_freep) Group *g = group_of_words(GROUP_PROCESS, 2);

        group_start_on(g, &s);
        target_write(&s, 0, 10, 0);
        target_write(&s, 0, 10, 1);
        g = restart(g);
        target_write(&s, 0, 5, 1);
        assert_exact(g, 25);
        group_yield(g);
        target_add_thread(&s, 0, 1);
        target_write(&s, 0, 1000, 1);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        g_assert_cmpuint(g->n_parts, ==, 4);
        target_write(&s, 0, 1, 0);
        target_write(&s, 1, 1, 1);
        assert_exact(g, 27);
        group_detach(g, 0);
        g_assert_cmpuint(g->n_parts, ==, 0);
        g_assert_cmpuint(g->past[0].value, ==, hits(27));
        g_assert_cmpuint(g->past[0].estimate, ==, hits(27));
        assert_exact(g, 27);
        add_target(g, &other);
        assert_opens(g);
        group_start(g);
        target_write(&other, 0, 3, 1);
        assert_exact(g, 30);
}

static void test_each_cpu_has_a_part_for_each(void) {
        _cleanup_(group_freep) Group *g = group_of_words(GROUP_CPU, 2), *probe = group_on_cpus("0");
        _cleanup_(cpuset_done) CpuSet cpus = cpus_of("0");

        if (!probe)
                return;
        g_assert_cmpint(group_add_cpus(g, &cpus, &sysfs.pmus.online), ==, 0);
        g_assert_cmpuint(g->n_parts, ==, 2);
        assert_opens(g);
        group_start(g);
        write_on_cpu(0, 7);
        assert_exact(g, 7);
        g_assert_cmpuint(slots_free(0), ==, SLOTS - 2);
        group_cpu_leave(g, 0);
        g_assert_cmpuint(slots_free(0), ==, SLOTS);
        g_assert_cmpint(group_cpu_join(g, 0, NULL), ==, 0);
        write_on_cpu(0, 5);
        assert_exact(g, 12);
}

/* The kernel has moved an uncore PMU to another CPU because its own went offline. */
static void test_a_part_moves_with_its_pmu(void) {
        _cleanup_(group_freep) Group *g = NULL;
        Pmu *pmu = pmu_table_find(&sysfs.pmus, "breakpoint");
        CpuSet all = pmu->cpus;

        if (!has_two_cpus() || !(g = group_on_cpus("0")))
                return;
        pmu->cpus = cpus_of("0");
        assert_opens(g);
        group_start(g);
        write_on_cpu(0, 7);
        group_follow_masks(g);
        g_assert_cmpint(g->parts[0].cpu, ==, 0);
        cpuset_done(&pmu->cpus);
        pmu->cpus = cpus_of("1");
        group_cpu_leave(g, 0);
        group_follow_masks(g);
        g_assert_cmpint(g->parts[0].cpu, ==, 1);
        write_on_cpu(0, 100);
        write_on_cpu(1, 5);
        assert_exact(g, 12);
        group_cpu_join(g, 0, NULL); /* back, without the PMU */
        write_on_cpu(0, 100);
        assert_exact(g, 12);
        cpuset_done(&pmu->cpus);
        pmu->cpus = all;
}

/* What one of several PMUs counts has no place at the others. */
static void test_groups_share_their_pmus(void) {
        Event *events = g_malloc0_n(2, sizeof(Event));
        Refusal why = REFUSAL_NULL;
        Group *g = NULL;

        events[0] = event_of_words(2);
        events[1] = event_of_words(3);
        g_assert_cmpint(group_new(GROUP_PROCESS, events, 2, &g, &why), ==, REFUSAL_INVALID_EVENT);
        g_assert_null(g);
        events = g_malloc0_n(2, sizeof(Event));
        events[0] = event_of_words(2);
        events[1] = event_of_words(2);
        g_assert_cmpint(group_new(GROUP_PROCESS, events, 2, &g, &why), ==, 0);
        g_assert_cmpuint(group_units(g), ==, 2);
        group_free(g);
}

int main(int argc, char **argv) {
        static const GroupTest tests[] = {
                { "a-thread-is-one", test_a_thread_is_one },
                { "values-go-on", test_values_go_on },
                { "each-cpu-has-a-part-for-each", test_each_cpu_has_a_part_for_each },
                { "a-part-moves-with-its-pmu", test_a_part_moves_with_its_pmu },
                { "groups-share-their-pmus", test_groups_share_their_pmus },
        };

        return group_tests_run(argc, argv, "/group-units/", tests, G_N_ELEMENTS(tests));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/group/group-save.h"

/*
 * Groups that are saved and loaded, with the real kernel.
 */

#include "perf/group/test-group.h"

/* A saved group: the record, and copies of the descriptors. */
typedef struct Kept {
        Pack pack;
        int *fds;
        size_t n_fds;
} Kept;

static Kept keep(const Group *g) {
        Kept k = {};

        group_save(g, &k.pack);
        g_assert_false(k.pack.failed);
        g_assert_cmpint(group_save_descriptors(g, (GroupExtent){}, &k.fds, &k.n_fds), ==, 0);
        for (size_t i = 0; i < k.n_fds; i++) {
                k.fds[i] = fcntl(k.fds[i], F_DUPFD_CLOEXEC, 3);
                g_assert_cmpint(k.fds[i], >=, 0);
        }
        return k;
}

static void kept_done(Kept *k) {
        for (size_t i = 0; i < k->n_fds; i++)
                close_fd(k->fds[i]);
        free(k->fds);
        pack_done(&k->pack);
}

static int kept_load(Kept *k, Group **ret) {
        const Unpack u = { k->pack.data, k->pack.n };

        return unpack_is_valid(&u) ? group_load(&u, &u, &sysfs.pmus, k->fds, k->n_fds, ret)
                                   : -EBADMSG;
}

/* What remains of g after a restart. */
static Group *load(Kept *k) {
        Group *g = NULL;

        g_assert_cmpint(kept_load(k, &g), ==, 0);
        for (size_t i = 0; i < k->n_fds; i++)
                g_assert_cmpint(k->fds[i], ==, -1);
        kept_done(k);
        return g;
}

/* The rounds of gate_all() are counted (-Wl,--wrap). */
static unsigned n_looks_for_births;

pid_t __real_tree_last_born(void);
pid_t __wrap_tree_last_born(void);

pid_t __wrap_tree_last_born(void) {
        n_looks_for_births++;
        return __real_tree_last_born();
}

static void go_on(Group *g) {
        groups_go_on(&g, 1);
        group_follow_cpus(g, &sysfs.pmus.online);
}

static Group *restart(Group *g) {
        Kept k = keep(g);

        group_free(g);
        g = load(&k);
        go_on(g);
        return g;
}

/* ---- going on ---- */

static void test_values_go_on(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 2);
        Reading before, after;

        target_write(&s, 0, 10, 0);
        target_write(&s, 0, 3, 1);
        group_read(g, 0, &before);
        for (unsigned round = 0; round < 3; round++) {
                g = restart(g);
                target_write(&s, 0, 100, 0);
        }
        group_read(g, 0, &after);
        g_assert_cmpuint(after.enabled, >=, before.enabled);
        assert_reads(g, 0, 310, QUALITY_EXACT);
        assert_reads(g, 1, 3, QUALITY_EXACT);
}

static void test_counts_while_nobody_is_there(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);
        Kept k;

        k = keep(g);
        g = group_free(g);
        target_write(&s, 0, 10, 0);
        g = load(&k);
        assert_exact(g, 10);
}

/* What was saved of the first target, then of the second, is one group. */
static void test_more_targets(void) {
        _cleanup_(target_done) Target first = target_new(), second = target_new();
        _cleanup_(target_done) Target third = target_new();
        _cleanup_(group_freep) Group *g = group_on(&first, 2);
        GroupExtent from = group_extent(g);
        Kept k = keep(g), more = {};
        int *fds;

        group_note_saved(g);
        add_target(g, &second);
        add_target(g, &third);
        g->targets[2].pending = &k;
        assert_opens(g);
        g_assert_cmpuint(g->same.n_targets, >=, from.n_targets);
        g_assert_cmpuint(g->same.n_parts, >=, from.n_parts);
        group_save_more(g, from, &k.pack);
        g_assert_cmpint(group_save_descriptors(g, from, &more.fds, &more.n_fds), ==, 0);
        fds = g_renew(int, k.fds, k.n_fds + more.n_fds);
        for (size_t i = 0; i < more.n_fds; i++)
                fds[k.n_fds++] = fcntl(more.fds[i], F_DUPFD_CLOEXEC, 3);
        k.fds = fds;
        free(more.fds);
        group_start(g);
        target_write(&first, 0, 10, 0);
        target_write(&second, 0, 10, 0);
        target_write(&third, 0, 10, 0);
        group_free(g);
        g = load(&k);
        g_assert_cmpuint(g->n_targets, ==, 2);
        g_assert_cmpint(g->targets[0].pid, ==, first.pid);
        g_assert_cmpint(g->targets[1].pid, ==, second.pid);
        target_write(&first, 0, 10, 0);
        target_write(&second, 0, 5, 1);
        assert_reads(g, 0, 30, QUALITY_EXACT);
        assert_reads(g, 1, 5, QUALITY_EXACT);
}

static void test_stopped_stays_stopped(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);

        target_write(&s, 0, 10, 0);
        group_stop(g);
        g = restart(g);
        target_write(&s, 0, 100, 0);
        assert_exact(g, 10);
        group_start(g);
        target_write(&s, 0, 5, 0);
        assert_exact(g, 15);
}

static void test_reset_holds(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);

        target_write(&s, 0, 10, 0);
        group_reset(g, 0);
        g = restart(g);
        target_write(&s, 0, 3, 0);
        assert_exact(g, 3);
}

static void test_detached_keeps_what_it_has_counted(void) {
        _cleanup_(target_done) Target first = target_new();
        _cleanup_(target_done) Target second = target_new();
        _cleanup_(group_freep) Group *g = group_on(&first, 1);

        add_target(g, &second);
        assert_opens(g);
        group_start(g);
        target_write(&first, 0, 10, 0);
        target_write(&second, 0, 100, 0);
        group_detach(g, 0);
        g = restart(g);
        g_assert_cmpuint(g->n_targets, ==, 1);
        g_assert_cmpint(g->targets[0].pid, ==, second.pid);
        target_write(&first, 0, 10, 0);
        target_write(&second, 0, 100, 0);
        assert_exact(g, 210);
}

static void test_target_that_ended_meanwhile_keeps_its_value(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);
        Kept k;

        target_write(&s, 0, 10, 0);
        k = keep(g);
        g = group_free(g);
        target_end(&s);
        g = load(&k);
        go_on(g);
        assert_exact(g, 10);
        g_assert_cmpuint(group_find_target(g, s.pid), ==, g->n_targets);
}

static void test_kernel_does_what_was_written_last(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);
        Kept k;

        k = keep(g); /* saved while counting, then stopped */
        group_stop(g);
        group_free(g);
        target_write(&s, 0, 10, 0);
        g = load(&k);
        go_on(g);
        target_write(&s, 0, 3, 0);
        assert_exact(g, 3);

        group_stop(g);
        k = keep(g); /* the other way round */
        group_start(g);
        group_free(g);
        g = load(&k);
        go_on(g);
        target_write(&s, 0, 100, 0);
        assert_exact(g, 3);
}

/* Neither the addition to the base nor the closing happened before it was saved. */
static void test_unwritten_yield_counts_nothing_twice(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);
        Kept k;

        target_write(&s, 0, 10, 0);
        k = keep(g);
        group_yield(g);
        group_free(g);
        g = load(&k);
        g_assert_false(g->yielded);
        group_yield(g); /* the hold is still there */
        go_on(g);
        target_write(&s, 0, 100, 0);
        assert_reads(g, 0, 10, QUALITY_NOT_COUNTED);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&s, 0, 5, 0);
        assert_exact(g, 15);
}

static void test_closed_yield_comes_back_yielded_and_resumes(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = NULL;

        target_add_thread(&s, 0, 1);
        g = group_on(&s, 1);
        target_write(&s, 0, 10, 0);
        group_yield(g);
        g = restart(g);
        g_assert_true(g->yielded);
        target_add_thread(&s, 0, 2);
        target_write(&s, 2, 1000, 0);
        assert_reads(g, 0, 10, QUALITY_NOT_COUNTED);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&s, 0, 5, 0);
        target_write(&s, 1, 50, 0);
        target_write(&s, 2, 500, 0);
        assert_exact(g, 565);
}

/* The current holds decide whether it stays off. */
static void test_disabled_yield_comes_back_counting(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, "context-switches:u");
        Reading first, second;

        group_start_on(g, &s);
        group_yield(g);
        g = restart(g);
        g_assert_false(g->yielded);
        group_read(g, 0, &first);
        target_write(&s, 0, 1, 0);
        group_read(g, 0, &second);
        g_assert_cmpuint(second.enabled, >, first.enabled);
}

/* ---- targets that have to be accepted ---- */

static void test_target_that_nobody_accepted_is_gone(void) {
        _cleanup_(target_done) Target first = target_new();
        _cleanup_(target_done) Target second = target_new();
        _cleanup_(group_freep) Group *g = group_on(&first, 1);

        attach_target(g, &second, (GroupTarget){ .pending = &second });
        assert_opens(g);
        g = restart(g);
        g_assert_cmpuint(g->n_targets, ==, 1);
        g_assert_cmpuint(g->n_parts, ==, 1);
        target_write(&first, 0, 10, 0);
        target_write(&second, 0, 100, 0);
        assert_exact(g, 10);
}

static void test_target_that_is_being_looked_at_does_not_count(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);

        g->targets[0].guarded = true;
        group_yield(g);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        g = restart(g);
        g_assert_true(g->targets[0].guarded);
        g_assert_true(g->targets[0].pending == g);
        target_write(&s, 0, 100, 0);
        assert_reads(g, 0, 0, QUALITY_NOT_COUNTED);
        group_accept(g, 0);
        target_write(&s, 0, 10, 0);
        assert_exact(g, 10);
}

/* ---- CPUs ---- */

static void test_cpus_that_changed_meanwhile_are_followed(void) {
        _cleanup_(group_freep) Group *g = NULL;
        _cleanup_(cpuset_done) CpuSet one = CPUSET_NULL;
        Kept k;

        if (!has_two_cpus() || !(g = group_on_cpus("0-1")))
                return;
        one = cpus_of("0");
        assert_opens(g);
        group_start(g);
        write_on_cpu(0, 5);
        write_on_cpu(1, 60);
        k = keep(g);
        group_free(g);
        g = load(&k);
        groups_go_on(&g, 1);
        group_follow_cpus(g, &one);
        g_assert_cmpuint(slots_free(1), ==, SLOTS);
        write_on_cpu(0, 5);
        write_on_cpu(1, 1000);
        assert_exact(g, 70);
        g = restart(g);
        write_on_cpu(1, 100);
        assert_exact(g, 170);
}

/* ---- pinned ---- */

static void test_dropped_event_keeps_what_it_said_last(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);
        Reading reading;

        g->pinned = true;
        group_start_on(g, &s);
        target_write(&s, 0, 10, 0);
        assert_exact(g, 10);
        g = restart(g);
        /* reads as end of file, like a dropped event */
        close_fd(g->slots[0].fd);
        g->slots[0].fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        group_read(g, 0, &reading);
        g_assert_cmpuint(reading.value, ==, hits(10));
        g_assert_cmpint(reading.quality, ==, QUALITY_NOT_COUNTED);
}

/* ---- what is no group ---- */

/* A group with something in each member. */
static Group *group_of_all(Target *s) {
        Group *g = group_on(s, 2);

        g->targets[0].guarded = true;
        target_write(s, 0, 10, 0);
        group_reset(g, 1);
        return g;
}

/* No descriptor is left: neither a copy nor one that the loading took. */
static void assert_loads_or_not(Kept *k, unsigned n_before) {
        Group *g = NULL;
        int r = kept_load(k, &g);

        g_assert_true(r == 0 || r == -EBADMSG || r == -ENODEV);
        g_assert_true((r == 0) == (g != NULL));
        group_free(g);
        kept_done(k);
        g_assert_cmpuint(count_descriptors(), ==, n_before);
}

static void test_truncated_record_is_refused(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of_all(&s);
        unsigned n_before;
        size_t n;
        Kept k;

        k = keep(g);
        n = k.pack.n;
        kept_done(&k);
        n_before = count_descriptors();
        for (size_t length = 0; length < n; length++) {
                k = keep(g);
                k.pack.n = length;
                assert_loads_or_not(&k, n_before);
        }
}

static void test_changed_record_does_no_harm(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of_all(&s);
        unsigned n_before;
        size_t n;
        Kept k;

        k = keep(g);
        n = k.pack.n;
        kept_done(&k);
        n_before = count_descriptors();
        for (size_t place = 0; place < n; place++)
                for (unsigned bit = 0; bit < 8; bit++) {
                        k = keep(g);
                        k.pack.data[place] ^= (uint8_t) (1 << bit);
                        assert_loads_or_not(&k, n_before);
                }
}

static void assert_refused_with(const Group *g, size_t n_fds, int swap) {
        unsigned n_before = count_descriptors();
        Group *loaded = NULL;
        Kept k = keep(g);

        for (; k.n_fds > n_fds; k.n_fds--)
                close_fd(k.fds[k.n_fds - 1]);
        if (k.n_fds < n_fds) { /* there is room for one more */
                k.fds[k.n_fds] = fcntl(k.fds[0], F_DUPFD_CLOEXEC, 3);
                k.n_fds++;
        }
        if (swap >= 0) {
                int first = k.fds[0];

                k.fds[0] = k.fds[swap];
                k.fds[swap] = first;
        }
        g_assert_cmpint(kept_load(&k, &loaded), ==, -EBADMSG);
        g_assert_null(loaded);
        kept_done(&k);
        g_assert_cmpuint(count_descriptors(), ==, n_before);
}

static void test_other_descriptors_are_refused(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 2);
        size_t n;
        Kept k;

        k = keep(g);
        n = k.n_fds;
        g_assert_cmpuint(n, ==, 3); /* the process, two events */
        kept_done(&k);
        for (size_t fewer = 0; fewer < n; fewer++)
                assert_refused_with(g, fewer, -1);
        assert_refused_with(g, n + 1, -1);
        assert_refused_with(g, n, 1);
}

static void test_other_pmu_is_refused(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);
        Group *loaded = NULL;
        char *name;
        Pmu *pmu;
        Kept k;

        k = keep(g);
        pmu = g->events[0].pmu;
        name = pmu->name;
        pmu->name = (char *) "breakpoints";
        g_assert_cmpint(kept_load(&k, &loaded), ==, -ENODEV);
        pmu->name = name;
        g_assert_null(loaded);
        kept_done(&k);
}

/* The others are stopped. */
static void test_many_go_on_together(void) {
        _cleanup_(target_done) Target s = target_new();
        Group *groups[32];

        for (size_t i = 0; i < G_N_ELEMENTS(groups); i++) {
                Kept k;

                groups[i] = group_of(GROUP_PROCESS, 0, "page-faults:u");
                add_target(groups[i], &s);
                assert_opens(groups[i]);
                groups[i]->wanted = i % 2;
                k = keep(groups[i]);
                group_free(groups[i]);
                groups[i] = load(&k);
        }
        n_looks_for_births = 0;
        groups_go_on(groups, G_N_ELEMENTS(groups));
        g_assert_cmpuint(n_looks_for_births, <, G_N_ELEMENTS(groups));
        target_write(&s, 0, 1, 0);
        for (size_t i = 0; i < G_N_ELEMENTS(groups); i++) {
                Reading reading;

                group_read(groups[i], 0, &reading);
                g_assert_cmpint(reading.enabled > 0, ==, groups[i]->wanted);
                group_free(groups[i]);
        }
}

int main(int argc, char **argv) {
        static const GroupTest tests[] = {
                { "values-go-on", test_values_go_on },
                { "counts-while-nobody-is-there", test_counts_while_nobody_is_there },
                { "more-targets", test_more_targets },
                { "stopped-stays-stopped", test_stopped_stays_stopped },
                { "reset-holds", test_reset_holds },
                { "detached-keeps-what-it-has-counted", test_detached_keeps_what_it_has_counted },
                { "target-that-ended-meanwhile-keeps-its-value",
                  test_target_that_ended_meanwhile_keeps_its_value },
                { "kernel-does-what-was-written-last", test_kernel_does_what_was_written_last },
                { "unwritten-yield-counts-nothing-twice",
                  test_unwritten_yield_counts_nothing_twice },
                { "closed-yield-comes-back-yielded-and-resumes",
                  test_closed_yield_comes_back_yielded_and_resumes },
                { "disabled-yield-comes-back-counting", test_disabled_yield_comes_back_counting },
                { "target-that-nobody-accepted-is-gone", test_target_that_nobody_accepted_is_gone },
                { "target-that-is-being-looked-at-does-not-count",
                  test_target_that_is_being_looked_at_does_not_count },
                { "cpus-that-changed-meanwhile-are-followed",
                  test_cpus_that_changed_meanwhile_are_followed },
                { "dropped-event-keeps-what-it-said-last",
                  test_dropped_event_keeps_what_it_said_last },
                { "many-go-on-together", test_many_go_on_together },
                { "truncated-record-is-refused", test_truncated_record_is_refused },
                { "changed-record-does-no-harm", test_changed_record_does_no_harm },
                { "other-descriptors-are-refused", test_other_descriptors_are_refused },
                { "other-pmu-is-refused", test_other_pmu_is_refused },
        };

        return group_tests_run(argc, argv, "/group-save/", tests, G_N_ELEMENTS(tests));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Groups that yield and resume, with the real kernel.
 */

#include "perf/group/test-group.h"
#include "perf/pmu/perf-open.h"

/* ---- giving way ---- */

static void test_values_never_fall_back_over_yields(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);
        Reading last = READING_NULL;

        for (unsigned round = 1; round <= 20; round++) {
                Reading yielded, resumed;

                target_write(&s, 0, 10, 0);
                group_yield(g);
                target_write(&s, 0, 1000, 0);
                group_read(g, 0, &yielded);
                g_assert_cmpint(yielded.quality, ==, QUALITY_NOT_COUNTED);
                g_assert_cmpuint(yielded.value, ==, hits(10 * round));
                g_assert_cmpuint(yielded.enabled, >, last.enabled);
                g_assert_cmpuint(yielded.running, >, last.running);
                g_assert_cmpint(group_resume(g, NULL), ==, 0);
                group_read(g, 0, &resumed);
                g_assert_cmpint(resumed.quality, ==, QUALITY_EXACT);
                g_assert_cmpuint(resumed.value, ==, yielded.value);
                g_assert_cmpuint(resumed.enabled, >=, yielded.enabled);
                g_assert_cmpuint(resumed.running, >=, yielded.running);
                last = resumed;
        }
}

static void test_yielded_breakpoints_free_their_slots(void) {
        Group *groups[SLOTS] = {};
        _cleanup_(group_freep) Group *fifth = NULL;

        if (!has_two_cpus() || !(fifth = group_on_cpus("0-1")))
                return;
        for (unsigned i = 0; i < SLOTS; i++) {
                groups[i] = group_on_cpus("0-1");
                assert_opens(groups[i]);
        }
        g_assert_cmpint(group_open(fifth, NULL), ==, REFUSAL_NO_COUNTER_LEFT);
        for (unsigned i = 0; i < SLOTS; i++) {
                group_yield(groups[i]);
                g_assert_cmpuint(slots_free(0), ==, i + 1);
                g_assert_cmpuint(slots_free(1), ==, i + 1);
        }
        for (unsigned i = 0; i < SLOTS; i++)
                g_assert_cmpint(group_resume(groups[i], NULL), ==, 0);
        g_assert_cmpuint(slots_free(0), ==, 0);
        for (unsigned i = 0; i < SLOTS; i++)
                group_free(groups[i]);
}

static void pin_to(unsigned cpu) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        g_assert_cmpint(sched_setaffinity(0, sizeof(set), &set), ==, 0);
}

/* What the part of each CPU has counted, and how good that is. */
static void assert_parts(Group *g, uint64_t first, Quality first_quality, uint64_t second,
                         Quality second_quality) {
        const uint64_t values[] = { first, second };
        const Quality qualities[] = { first_quality, second_quality };

        group_refresh(g);
        for (size_t part = 0; part < 2; part++) {
                Reading reading;

                group_sum_part(g, 0, part, &reading);
                g_assert_cmpuint(reading.value, ==, hits(values[part]));
                g_assert_cmpint(reading.quality, ==, qualities[part]);
        }
}

static void test_one_cpu_yields_and_the_other_counts(void) {
        _cleanup_(group_freep) Group *g = NULL;
        _cleanup_(cpuset_done) CpuSet first = CPUSET_NULL;
        Reading reading;

        if (!has_two_cpus() || !(g = group_on_cpus("0-1")))
                return;
        g_assert_cmpint(cpuset_add(&first, 0), ==, 0);
        assert_opens(g);
        group_start(g);
        for (unsigned cpu = 0; cpu < 2; cpu++) {
                pin_to(cpu);
                target_write_words(7, 0);
        }
        assert_parts(g, 7, QUALITY_EXACT, 7, QUALITY_EXACT);
        group_yield_cpus(g, &first);
        g_assert_false(g->yielded);
        g_assert_true(group_yields_beyond(g, &CPUSET_NULL));
        g_assert_cmpuint(slots_free(0), ==, SLOTS);
        g_assert_cmpuint(slots_free(1), ==, SLOTS - 1);
        for (unsigned cpu = 0; cpu < 2; cpu++) {
                pin_to(cpu);
                target_write_words(5, 0);
        }
        assert_parts(g, 7, QUALITY_NOT_COUNTED, 12, QUALITY_EXACT);
        group_read(g, 0, &reading);
        g_assert_cmpuint(reading.value, ==, hits(19));
        g_assert_cmpint(reading.quality, ==, QUALITY_NOT_COUNTED); /* the lowest of its parts */
        /* it resumes on all CPUs but those */
        g_assert_cmpint(group_resume_cpus(g, &first, NULL), ==, 0);
        g_assert_cmpuint(slots_free(0), ==, SLOTS);
        g_assert_cmpint(group_resume_cpus(g, &CPUSET_NULL, NULL), ==, 0);
        for (unsigned cpu = 0; cpu < 2; cpu++) {
                pin_to(cpu);
                target_write_words(1, 0);
        }
        assert_parts(g, 8, QUALITY_EXACT, 13, QUALITY_EXACT);
}

typedef struct Full {
        int cpu; /* has no counter left; -1: none */
        unsigned n_calls;
} Full;

static void open_while_full(void *userdata, PerfOpen *opens, size_t n) {
        Full *full = userdata;
        size_t room = 0;

        full->n_calls++;
        while (room < n && opens[room].cpu != full->cpu)
                room++;
        perf_open_here(opens, room);
        for (size_t i = room; i < n; i++)
                opens[i].fd = i == room ? -ENOSPC : -ECANCELED;
}

static void test_cpus_resume_at_once_but_for_those_that_are_full(void) {
        _cleanup_(cpuset_done) CpuSet both = cpus_of("0-1");
        _cleanup_(group_freep) Group *g = NULL;
        Full full = { .cpu = 0 };

        if (!has_two_cpus() || !(g = group_on_cpus("0-1")))
                return;
        for (unsigned i = 1; i < SLOTS; i++)
                g_assert_cmpint(group_add_cpus(g, &both, &sysfs.pmus.online), ==, 0);
        assert_opens(g);
        group_start(g);
        perf_open_set(&(PerfOpener){ .open = open_while_full, .userdata = &full });
        group_yield_cpus(g, &both);
        g_assert_cmpint(group_resume_cpus(g, &CPUSET_NULL, NULL), ==, REFUSAL_NO_COUNTER_LEFT);
        g_assert_cmpint(g->error, ==, ENOSPC);
        g_assert_cmpuint(slots_free(0), ==, SLOTS);
        g_assert_cmpuint(slots_free(1), ==, 0);
        write_on_cpu(1, 7);
        g_assert_cmpint(group_resume_cpus(g, &CPUSET_NULL, NULL), ==, REFUSAL_NO_COUNTER_LEFT);
        full = (Full){ .cpu = -1 };
        g_assert_cmpint(group_resume_cpus(g, &CPUSET_NULL, NULL), ==, 0);
        perf_open_set(NULL);
        g_assert_cmpuint(full.n_calls, ==, 1);
        write_on_cpu(0, 20);
        assert_exact(g, SLOTS * 27);
}

/* Software events take no counters, so they stay open and are only disabled. */
static void test_yielded_software_event_stays_open_and_counts_nothing(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, "context-switches:u");
        Reading before, after;
        size_t open;

        group_start_on(g, &s);
        target_write(&s, 0, 1, 0);
        open = count_descriptors();
        group_yield(g);
        g_assert_cmpuint(count_descriptors(), ==, open);
        group_read(g, 0, &before);
        for (int i = 0; i < 10; i++)
                target_write(&s, 0, 1, 0);
        group_read(g, 0, &after);
        g_assert_cmpint(after.quality, ==, QUALITY_NOT_COUNTED);
        g_assert_cmpuint(after.enabled, ==, before.enabled);
        /* nor does it when its owner starts it meanwhile */
        group_stop(g);
        group_start(g);
        target_write(&s, 0, 1, 0);
        group_read(g, 0, &after);
        g_assert_cmpuint(after.enabled, ==, before.enabled);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&s, 0, 1, 0);
        group_read(g, 0, &after);
        g_assert_cmpint(after.quality, ==, QUALITY_EXACT);
        g_assert_cmpuint(after.enabled, >, before.enabled);
}

static void test_start_and_stop_while_yielded_hold_afterwards(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);

        group_yield(g);
        group_stop(g);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&s, 0, 5, 0);
        group_yield(g);
        group_start(g);
        target_write(&s, 0, 5, 0);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&s, 0, 3, 0);
        assert_exact(g, 3);
}

static void test_reset_while_yielded_starts_from_0(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);

        target_write(&s, 0, 5, 0);
        group_yield(g);
        group_reset(g, 0);
        assert_reads(g, 0, 0, QUALITY_NOT_COUNTED);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&s, 0, 4, 0);
        assert_exact(g, 4);
}

static void test_failed_resume_keeps_the_error_and_can_be_tried_again(void) {
        _cleanup_(group_freep) Group *g = group_on_cpus("0");
        Refusal why = REFUSAL_NULL;
        int fds[SLOTS];

        if (!g)
                return;
        assert_opens(g);
        group_start(g);
        write_on_cpu(0, 5);
        group_yield(g);
        g_assert_cmpint(g->error, ==, 0);
        g_assert_cmpuint(slots_take(0, fds, SLOTS), ==, SLOTS);
        for (int i = 0; i < 2; i++) {
                g_assert_cmpint(group_resume(g, &why), ==, REFUSAL_NO_COUNTER_LEFT);
                g_assert_cmpint(g->error, ==, ENOSPC);
                assert_reads(g, 0, 5, QUALITY_NOT_COUNTED);
        }
        slots_give(fds, 1);
        g_assert_cmpint(group_resume(g, &why), ==, 0);
        g_assert_cmpint(g->error, ==, 0);
        write_on_cpu(0, 6);
        assert_exact(g, 11);
        slots_give(fds + 1, SLOTS - 1);
}

/* A group that yields is without error, whatever it was before. */
static void test_yield_takes_the_error_away(void) {
        _cleanup_(group_freep) Group *g = group_on_cpus("0");
        int fds[SLOTS];

        if (!g)
                return;
        assert_opens(g);
        group_yield(g);
        g_assert_cmpuint(slots_take(0, fds, SLOTS), ==, SLOTS);
        g_assert_cmpint(group_resume(g, NULL), ==, REFUSAL_NO_COUNTER_LEFT);
        group_yield(g);
        g_assert_cmpint(g->error, ==, 0);
        g_assert_true(g->yielded);
        slots_give(fds, SLOTS);
}

/* ---- threads that come and go meanwhile ---- */

static void test_threads_born_while_yielded_are_counted_afterwards(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);

        group_yield(g);
        target_add_thread(&s, 0, 1);
        target_add_thread(&s, 1, 2);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_add_thread(&s, 2, 3);
        target_write(&s, 0, 1, 0);
        target_write(&s, 1, 10, 0);
        target_write(&s, 2, 100, 0);
        target_write(&s, 3, 1000, 0);
        assert_exact(g, 1111);
}

typedef struct LateThread {
        Target *target;
        unsigned n_openings;
} LateThread;

/* The first time the target has a thread more when its threads are opened than when they were
 * listed. */
static void open_with_late_thread(void *userdata, PerfOpen *opens, size_t n) {
        LateThread *late = userdata;

        if (late->n_openings++ == 0)
                target_add_thread(late->target, 0, 1);
        perf_open_here(opens, n);
}

static void test_thread_born_between_listing_and_opening_is_counted(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);
        LateThread late = { .target = &s };

        group_yield(g);
        perf_open_set(&(PerfOpener){ .open = open_with_late_thread, .userdata = &late });
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        perf_open_set(NULL);
        g_assert_cmpuint(late.n_openings, ==, 2);
        target_write(&s, 0, 1, 0);
        target_write(&s, 1, 10, 0);
        assert_exact(g, 11);
}

static void test_thread_that_ended_while_yielded_keeps_its_value(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = NULL;

        target_add_thread(&s, 0, 1);
        g = group_on(&s, 1);
        target_write(&s, 1, 30, 0);
        group_yield(g);
        target_end_thread(&s, 1);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&s, 0, 4, 0);
        assert_exact(g, 34);
}

static void test_target_that_ended_while_yielded_keeps_its_value(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);

        target_write(&s, 0, 9, 0);
        group_yield(g);
        target_end(&s);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        assert_exact(g, 9);
}

/* Its main thread is a zombie then, and a part that cannot be opened. */
static void test_process_lives_on_without_its_main_thread(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = NULL;

        target_add_thread(&s, 0, 1);
        g = group_on(&s, 1);
        target_write(&s, 0, 5, 0);
        target_end_thread(&s, 0);
        target_write(&s, 1, 6, 0);
        assert_exact(g, 11);
        group_yield(g);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&s, 1, 7, 0);
        assert_exact(g, 18);
}

static void test_process_with_the_number_of_an_ended_target_is_left_alone(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);
        Target other;

        target_write(&s, 0, 9, 0);
        group_yield(g);
        target_end(&s);
        if (!target_start_as(&other, s.pid)) {
                g_test_skip("this user may not choose a process number");
                return;
        }
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&other, 0, 1000, 0);
        assert_exact(g, 9);
        target_end(&other);
}

static void test_process_with_the_number_of_an_ended_thread_is_left_alone(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = NULL;
        Target other;

        target_add_thread(&s, 0, 1);
        g = group_on(&s, 1);
        target_write(&s, 1, 9, 0);
        group_yield(g);
        target_end_thread(&s, 1);
        if (!target_start_as(&other, s.tids[1])) {
                g_test_skip("this user may not choose a process number");
                target_end(&s);
                return;
        }
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&other, 0, 1000, 0);
        target_write(&s, 0, 1, 0);
        assert_exact(g, 10);
        target_end(&other);
}

static void test_several_targets_add_up(void) {
        _cleanup_(target_done) Target a = target_new();
        _cleanup_(target_done) Target b = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);

        add_target(g, &a);
        add_target(g, &b);
        assert_opens(g);
        group_start(g);
        target_write(&a, 0, 1, 0);
        target_write(&b, 0, 10, 0);
        group_yield(g);
        target_add_thread(&b, 0, 1);
        target_end(&a);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&b, 0, 100, 0);
        target_write(&b, 1, 1000, 0);
        assert_exact(g, 1111);
}

int main(int argc, char **argv) {
        static const GroupTest tests[] = {
                { "values-never-fall-back-over-yields", test_values_never_fall_back_over_yields },
                { "yielded-breakpoints-free-their-slots",
                  test_yielded_breakpoints_free_their_slots },
                { "yielded-software-event-stays-open-and-counts-nothing",
                  test_yielded_software_event_stays_open_and_counts_nothing },
                { "start-and-stop-while-yielded-hold-afterwards",
                  test_start_and_stop_while_yielded_hold_afterwards },
                { "reset-while-yielded-starts-from-0", test_reset_while_yielded_starts_from_0 },
                { "failed-resume-keeps-the-error-and-can-be-tried-again",
                  test_failed_resume_keeps_the_error_and_can_be_tried_again },
                { "yield-takes-the-error-away", test_yield_takes_the_error_away },
                { "threads-born-while-yielded-are-counted-afterwards",
                  test_threads_born_while_yielded_are_counted_afterwards },
                { "thread-born-between-listing-and-opening-is-counted",
                  test_thread_born_between_listing_and_opening_is_counted },
                { "thread-that-ended-while-yielded-keeps-its-value",
                  test_thread_that_ended_while_yielded_keeps_its_value },
                { "target-that-ended-while-yielded-keeps-its-value",
                  test_target_that_ended_while_yielded_keeps_its_value },
                { "process-lives-on-without-its-main-thread",
                  test_process_lives_on_without_its_main_thread },
                { "process-with-the-number-of-an-ended-target-is-left-alone",
                  test_process_with_the_number_of_an_ended_target_is_left_alone },
                { "process-with-the-number-of-an-ended-thread-is-left-alone",
                  test_process_with_the_number_of_an_ended_thread_is_left_alone },
                { "one-cpu-yields-and-the-other-counts", test_one_cpu_yields_and_the_other_counts },
                { "cpus-resume-at-once-but-for-those-that-are-full",
                  test_cpus_resume_at_once_but_for_those_that_are_full },
                { "several-targets-add-up", test_several_targets_add_up },
        };

        return group_tests_run(argc, argv, "/group-yield/", tests, G_N_ELEMENTS(tests));
}

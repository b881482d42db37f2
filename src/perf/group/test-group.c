/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Groups with the real kernel: what they count, and what they open.
 */

#include "test-group.h"

#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "perf/pmu/perf-open.h"

/* ---- counting ---- */

static void test_counts_between_start_and_stop(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);

        add_target(g, &s);
        assert_opens(g);
        target_write(&s, 0, 10, 0);
        assert_reads(g, 0, 0, QUALITY_NOT_COUNTED);
        group_start(g);
        target_write(&s, 0, 300, 0);
        assert_exact(g, 300);
        group_stop(g);
        target_write(&s, 0, 5000, 0);
        assert_exact(g, 300);
        group_start(g);
        target_write(&s, 0, 1, 0);
        assert_exact(g, 301);
}

static void test_siblings_are_gated_by_their_leader(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 3, NULL);

        add_target(g, &s);
        assert_opens(g);
        for (unsigned word = 0; word < 3; word++)
                target_write(&s, 0, 7, word);
        group_start(g);
        for (unsigned word = 0; word < 3; word++)
                target_write(&s, 0, 10 + word, word);
        group_stop(g);
        for (unsigned word = 0; word < 3; word++)
                target_write(&s, 0, 7, word);
        for (unsigned word = 0; word < 3; word++)
                assert_reads(g, word, 10 + word, QUALITY_EXACT);
}

/* Siblings without their leader would count on their own. inotify(7) tells the order in which files
 * are closed, in the place of events here. */
static void test_siblings_are_closed_before_their_leader(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 3, NULL);
        _cleanup_close_ int watch = inotify_init1(IN_CLOEXEC);
        g_autofree char *dir = g_dir_make_tmp("perfalloc-XXXXXX", NULL);
        _Alignas(struct inotify_event) char events[3 * (sizeof(struct inotify_event) + 16)],
                order[4] = "";

        add_target(g, &s);
        g_assert_cmpint(inotify_add_watch(watch, dir, IN_CLOSE), >=, 0);
        for (size_t event = 0; event < 3; event++) {
                g_autofree char *file = g_strdup_printf("%s/%zu", dir, event);

                group_slot(g, 0, event)->fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                g_assert_cmpint(group_slot(g, 0, event)->fd, >=, 0);
                g_assert_no_errno(unlink(file));
        }
        group_close_part(g, 0);
        g_assert_cmpint(read(watch, events, sizeof(events)), ==, sizeof(events));
        for (size_t i = 0; i < 3; i++)
                order[i] = *((struct inotify_event *) (events + i * sizeof(events) / 3))->name;
        g_assert_cmpstr(order, ==, "210");
        g_assert_no_errno(rmdir(dir));
}

/* The target writes to both words in turns, so at no instant their counts differ by more than 1. */
static void test_a_group_is_read_at_one_instant(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 2);
        uint64_t last = 0;

        target_order(&s, 0, (TargetOrder){ TARGET_ALTERNATE, 0, 0 });
        target_wait(&s);
        for (unsigned i = 0; last < hits(10000) || i < 1000; i++) {
                Reading first, second;

                group_refresh(g);
                group_sum(g, 0, &first);
                group_sum(g, 1, &second);
                g_assert_cmpuint(first.value - second.value, <=, 1);
                g_assert_cmpuint(first.running, ==, second.running);
                last = second.value;
        }
}

static void test_ways_of_yielding_are_not_mixed(void) {
        Event *events = g_malloc0_n(2, sizeof(Event));
        g_autofree char *word = word_event(0);
        Refusal why = REFUSAL_NULL;
        Group *g = NULL;

        events[0] = parse(&sysfs, word);
        events[1] = parse(&sysfs, "page-faults");
        g_assert_cmpint(group_new(GROUP_PROCESS, events, 2, &g, &why), ==, REFUSAL_INVALID_EVENT);
        g_assert_null(g);
        g_assert_nonnull(strstr(why.text, "page-faults"));
        g_assert_nonnull(strstr(why.text, "breakpoint"));
}

static void test_threads_born_later_are_counted_and_children_are_not(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);

        target_add_thread(&s, 0, 1);
        target_add_thread(&s, 1, 2);
        target_write(&s, 0, 1, 0);
        target_write(&s, 1, 10, 0);
        target_write(&s, 2, 100, 0);
        target_fork(&s, 1000, 0);
        assert_exact(g, 111);
        target_end_thread(&s, 2);
        assert_exact(g, 111);
}

static void test_descendants_are_counted_when_asked_for(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);

        g->descendants = true;
        group_start_on(g, &s);
        target_fork(&s, 1000, 0);
        target_write(&s, 0, 1, 0);
        assert_exact(g, 1001);
}

/* An inherited pinned event could starve in a child without notice. */
static void test_pinned_counts_the_threads_that_it_was_opened_on(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = NULL;

        target_add_thread(&s, 0, 1);
        g = pinned_on(&s, 1);
        target_add_thread(&s, 0, 2);
        target_write(&s, 0, 1, 0);
        target_write(&s, 1, 10, 0);
        target_write(&s, 2, 100, 0);
        assert_exact(g, 11);

        group_yield(g);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&s, 2, 100, 0);
        target_write(&s, 1, 1000, 0);
        assert_exact(g, 1011);
}

/* Even with a thread that has not run since, which has nothing to measure. */
static void test_idle_thread_does_not_spoil_the_quality(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = NULL;

        target_add_thread(&s, 0, 1);
        g = group_on(&s, 1);
        target_write(&s, 0, 5, 0);
        assert_exact(g, 5);
        group_yield(g);
        target_end_thread(&s, 1);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        target_write(&s, 0, 5, 0);
        assert_exact(g, 10);
}

static void test_reset_starts_from_0(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 2);
        Reading reading;

        target_write(&s, 0, 5, 0);
        target_write(&s, 0, 6, 1);
        group_stop(g);
        group_reset(g, 0);
        group_read(g, 0, &reading);
        g_assert_cmpuint(reading.value, ==, 0);
        g_assert_cmpuint(reading.enabled, ==, 0);
        g_assert_cmpuint(reading.running, ==, 0);
        assert_reads(g, 1, 6, QUALITY_EXACT);
        group_start(g);
        target_write(&s, 0, 7, 0);
        assert_reads(g, 0, 7, QUALITY_EXACT);
}

/* Pages that this process has not touched yet: page faults, which every machine counts. */
static void touch_pages(size_t n) {
        size_t size = n * (size_t) sysconf(_SC_PAGESIZE);
        char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        g_assert_true(pages != MAP_FAILED);
        (void) madvise(pages, size, MADV_NOHUGEPAGE);
        for (size_t i = 0; i < size; i += (size_t) sysconf(_SC_PAGESIZE))
                ((volatile char *) pages)[i] = 1;
        g_assert_no_errno(munmap(pages, size));
}

/* A client has the descriptor (GetFds), and resets the event behind the group's back. */
static void test_reset_by_both_is_no_huge_value(void) {
        const Target self = { .pid = getpid(),
                              .pidfd = (int) syscall(SYS_pidfd_open, getpid(), 0) };
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, "page-faults:u");
        Reading reading;

        group_start_on(g, &self);
        touch_pages(5000);
        group_reset(g, 0);
        g_assert_no_errno(ioctl(g->slots[0].fd, PERF_EVENT_IOC_RESET, 0));
        group_read(g, 0, &reading);
        g_assert_cmpuint(reading.value, <, 1000);
        g_assert_cmpuint(reading.estimate, <, 1000);
        touch_pages(5000);
        touch_pages(5000); /* beyond what was seen at the reset */
        group_read(g, 0, &reading);
        g_assert_cmpuint(reading.value, >=, 10000);
        g_assert_cmpuint(reading.value, <, 11000);
        close(self.pidfd);
}

static void test_target_that_ends_keeps_its_value(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_on(&s, 1);

        target_write(&s, 0, 77, 0);
        target_end(&s);
        assert_exact(g, 77);
        group_yield(g);
        assert_reads(g, 0, 77, QUALITY_NOT_COUNTED);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        assert_exact(g, 77);
}

/* What read(2) would say of a thread that is just leaving its CPU, and then. */
static void test_times_that_come_late_are_waited_for(void) {
        static const uint64_t event[][3] = { { 300, 0, 0 }, { 300, 9, 9 } },
                              group[][5] = { { 2, 0, 0, 0, 5 }, { 2, 9, 9, 0, 5 } };

        for (unsigned n_events = 1; n_events <= 2; n_events++) {
                _cleanup_(target_done) Target s = target_new();
                _cleanup_(group_freep) Group *g = group_on(&s, n_events);
                const uint64_t *records = n_events == 1 ? event[0] : group[0];
                size_t size = n_events == 1 ? sizeof(event[0]) : sizeof(group[0]);
                int ends[2];

                g_assert_no_errno(pipe2(ends, O_CLOEXEC | O_DIRECT));
                for (size_t i = 0; i < 2; i++)
                        g_assert_cmpint(write(ends[1], (const char *) records + i * size, size), ==,
                                        (ssize_t) size);
                close_fd(g->slots[0].fd);
                g->slots[0].fd = ends[0];
                close_fd(ends[1]);
                assert_value(g, n_events - 1, n_events == 1 ? 300 : 5, QUALITY_EXACT);
        }
}

/* ---- opening ---- */

static void test_failed_opening_leaves_all_as_before(void) {
        _cleanup_(group_freep) Group *g = NULL;
        Refusal why = REFUSAL_NULL;
        unsigned before;
        int fds[SLOTS];

        if (!has_two_cpus() || !(g = group_on_cpus("0-1")))
                return;
        g_assert_cmpuint(slots_take(1, fds, SLOTS), ==, SLOTS);
        before = count_descriptors();
        g_assert_cmpint(group_open(g, &why), ==, REFUSAL_NO_COUNTER_LEFT);
        g_assert_nonnull(strstr(why.text, "CPU 1"));
        g_assert_cmpuint(count_descriptors(), ==, before);
        g_assert_cmpuint(slots_free(0), ==, SLOTS);
        slots_give(fds, SLOTS);
        assert_opens(g);
        g_assert_cmpuint(slots_free(0), ==, SLOTS - 1);
}

static void test_freed_group_has_left_nothing_open(void) {
        _cleanup_(target_done) Target s = target_new();
        unsigned before;
        Group *g;

        target_add_thread(&s, 0, 1);
        before = count_descriptors();
        g = group_on(&s, 3);
        g_assert_cmpuint(count_descriptors(), ==, before + group_n_descriptors(g));
        group_free(g);
        g_assert_cmpuint(count_descriptors(), ==, before);
}

static void test_cpu_that_is_offline_is_not_opened(void) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL, online = CPUSET_NULL;
        _cleanup_(group_freep) Group *g = group_on_cpus("0");

        if (!g)
                return;
        cpus = cpus_of("4000-4001");
        g_assert_cmpint(group_add_cpus(g, &cpus, &online), ==, 0);
        g_assert_cmpuint(g->n_parts, ==, 3);
        assert_opens(g);
        group_start(g);
        write_on_cpu(0, 9);
        assert_exact(g, 9);
}

/* Opens as the kernel does while CPU 0 is offline, or while the PMU does not count there. */
static void open_without_cpu(void *userdata, PerfOpen *opens, size_t n) {
        const bool *offline = userdata;

        perf_open_here(opens, n);
        for (size_t i = 0; i < n; i++) {
                if (opens[i].cpu != 0 ||
                    (!*offline && opens[i].attr.known.type != PERF_TYPE_BREAKPOINT))
                        continue;
                close_fd(opens[i].fd);
                opens[i].fd = -ENODEV;
                for (size_t later = i + 1; later < n; later++) {
                        close_fd(opens[later].fd);
                        opens[later].fd = -ECANCELED;
                }
                return;
        }
}

/* It was online when the list was made. */
static void test_cpu_that_has_just_left_is_not_opened(void) {
        _cleanup_(group_freep) Group *g = NULL;
        bool offline = true;
        int r;

        if (!has_two_cpus() || !(g = group_on_cpus("0-1")))
                return;
        perf_open_set(&(PerfOpener){ .open = open_without_cpu, .userdata = &offline });
        r = group_open(g, NULL);
        perf_open_set(NULL);
        g_assert_cmpint(r, ==, 0);
        group_start(g);
        write_on_cpu(0, 9);
        write_on_cpu(1, 20);
        assert_exact(g, 20);
        g_assert_cmpint(group_cpu_join(g, 0, NULL), ==, 0);
        write_on_cpu(0, 300);
        assert_exact(g, 320);
}

static void test_cpu_where_a_pmu_does_not_count_is_refused(void) {
        _cleanup_(group_freep) Group *g = NULL;
        Refusal why = REFUSAL_NULL;
        bool offline = false;
        int r;

        if (!has_two_cpus() || !(g = group_on_cpus("0-1")))
                return;
        perf_open_set(&(PerfOpener){ .open = open_without_cpu, .userdata = &offline });
        r = group_open(g, &why);
        perf_open_set(NULL);
        g_assert_cmpint(r, ==, REFUSAL_NOT_ON_THIS_CPU);
        g_assert_cmpuint(slots_free(1), ==, SLOTS);
}

static void test_no_cpus_are_no_parts(void) {
        _cleanup_(cpuset_done) CpuSet none = CPUSET_NULL;
        _cleanup_(group_freep) Group *g = group_of(GROUP_CPU, 1, NULL);

        for (int i = 0; i < 3; i++)
                g_assert_cmpint(group_add_cpus(g, &none, &sysfs.pmus.online), ==, 0);
        assert_opens(g);
        group_start(g);
        group_yield(g);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        assert_reads(g, 0, 0, QUALITY_NOT_COUNTED);
}

static void test_cpu_that_leaves_keeps_its_value(void) {
        _cleanup_(group_freep) Group *g = NULL;

        if (!has_two_cpus() || !(g = group_on_cpus("0-1")))
                return;
        assert_opens(g);
        group_start(g);
        write_on_cpu(0, 5);
        write_on_cpu(1, 60);
        group_cpu_leave(g, 1);
        g_assert_cmpuint(slots_free(1), ==, SLOTS);
        write_on_cpu(1, 1000);
        assert_exact(g, 65);
        g_assert_cmpint(group_cpu_join(g, 1, NULL), ==, 0);
        write_on_cpu(1, 700);
        assert_exact(g, 765);
}

static void test_what_is_unpinned_goes_on(void) {
        for (unsigned stopped = 0; stopped < 2; stopped++) {
                _cleanup_(group_freep) Group *g = NULL;
                size_t next = 0;

                if (!has_two_cpus() || !(g = group_on_cpus("0-1")))
                        return;
                g->pinned = true;
                assert_opens(g);
                group_start(g);
                write_on_cpu(0, 5);
                write_on_cpu(1, 60);
                if (stopped)
                        group_stop(g);
                g_assert_cmpint(group_unpin(g, &next, 0), ==, 1);
                g_assert_false(g->pinned);
                g_assert_cmpint(g->error, ==, 0);
                write_on_cpu(1, 700);
                assert_exact(g, stopped ? 65 : 765);
        }
}

static void test_many_start_at_once(void) {
        _cleanup_(target_done) Target s = target_new();
        Group *groups[32];

        for (size_t i = 0; i < G_N_ELEMENTS(groups); i++) {
                groups[i] = group_of(GROUP_PROCESS, 0, "page-faults:u");
                add_target(groups[i], &s);
                assert_opens(groups[i]);
        }
        groups_start(groups, G_N_ELEMENTS(groups));
        target_write(&s, 0, 1, 0);
        for (size_t i = 0; i < G_N_ELEMENTS(groups); i++) {
                Reading reading;

                group_read(groups[i], 0, &reading);
                g_assert_cmpuint(reading.enabled, >, 0);
                g_assert_cmpstr(quality_name(reading.quality), ==, quality_name(QUALITY_EXACT));
                group_free(groups[i]);
        }
}

int main(int argc, char **argv) {
        static const GroupTest tests[] = {
                { "counts-between-start-and-stop", test_counts_between_start_and_stop },
                { "many-start-at-once", test_many_start_at_once },
                { "siblings-are-gated-by-their-leader", test_siblings_are_gated_by_their_leader },
                { "siblings-are-closed-before-their-leader",
                  test_siblings_are_closed_before_their_leader },
                { "a-group-is-read-at-one-instant", test_a_group_is_read_at_one_instant },
                { "ways-of-yielding-are-not-mixed", test_ways_of_yielding_are_not_mixed },
                { "threads-born-later-are-counted-and-children-are-not",
                  test_threads_born_later_are_counted_and_children_are_not },
                { "descendants-are-counted-when-asked-for",
                  test_descendants_are_counted_when_asked_for },
                { "pinned-counts-the-threads-that-it-was-opened-on",
                  test_pinned_counts_the_threads_that_it_was_opened_on },
                { "idle-thread-does-not-spoil-the-quality",
                  test_idle_thread_does_not_spoil_the_quality },
                { "reset-starts-from-0", test_reset_starts_from_0 },
                { "reset-by-both-is-no-huge-value", test_reset_by_both_is_no_huge_value },
                { "target-that-ends-keeps-its-value", test_target_that_ends_keeps_its_value },
                { "times-that-come-late-are-waited-for", test_times_that_come_late_are_waited_for },
                { "failed-opening-leaves-all-as-before", test_failed_opening_leaves_all_as_before },
                { "freed-group-has-left-nothing-open", test_freed_group_has_left_nothing_open },
                { "cpu-that-is-offline-is-not-opened", test_cpu_that_is_offline_is_not_opened },
                { "cpu-that-has-just-left-is-not-opened",
                  test_cpu_that_has_just_left_is_not_opened },
                { "cpu-where-a-pmu-does-not-count-is-refused",
                  test_cpu_where_a_pmu_does_not_count_is_refused },
                { "no-cpus-are-no-parts", test_no_cpus_are_no_parts },
                { "cpu-that-leaves-keeps-its-value", test_cpu_that_leaves_keeps_its_value },
                { "what-is-unpinned-goes-on", test_what_is_unpinned_goes_on },
        };

        return group_tests_run(argc, argv, "/group/", tests, G_N_ELEMENTS(tests));
}

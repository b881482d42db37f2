/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The processes of a group, with the real kernel: attached and detached while it counts.
 */

#include "perf/group/test-group.h"

#include <sys/ioctl.h>

#include "core/clock.h"
#include "perf/group/gate.h"
#include "perf/process/test-rest.h"

/* Attaches a target like the template and opens it; returns its index. */
static size_t attach(Group *g, const Target *s, GroupTarget target) {
        attach_target(g, s, target);
        assert_opens(g);
        return g->n_targets - 1;
}

static void test_pending_does_not_count(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);
        size_t place;

        group_start(g);
        place = attach(g, &s, (GroupTarget){ .pending = &s });
        target_write(&s, 0, 10, 0);
        group_start(g); /* whatever is done to the others */
        target_write(&s, 0, 10, 0);
        assert_reads(g, 0, 0, QUALITY_NOT_COUNTED);
        group_accept(g, place);
        target_write(&s, 0, 300, 0);
        assert_exact(g, 300);
}

static void test_accepted_while_stopped_waits_for_the_start(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);

        group_accept(g, attach(g, &s, (GroupTarget){ .pending = &s }));
        target_write(&s, 0, 10, 0);
        assert_reads(g, 0, 0, QUALITY_NOT_COUNTED);
        group_start(g);
        target_write(&s, 0, 300, 0);
        assert_exact(g, 300);
}

static void test_detached_keeps_what_it_has_counted(void) {
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 2, NULL);
        Target s[3];

        for (size_t i = 0; i < G_N_ELEMENTS(s); i++) {
                target_start(&s[i]);
                target_add_thread(&s[i], 0, 1);
                (void) attach(g, &s[i], (GroupTarget){});
        }
        group_start(g);
        for (size_t i = 0; i < G_N_ELEMENTS(s); i++) {
                target_write(&s[i], 0, 1, 0);
                target_write(&s[i], 1, 10, 0);
                target_write(&s[i], 1, 5, 1);
        }
        /* the first one: the others move up, and stay distinct */
        group_detach(g, 0);
        g_assert_cmpuint(g->n_targets, ==, 2);
        g_assert_cmpuint(g->n_parts, ==, 4);
        for (size_t i = 0; i < G_N_ELEMENTS(s); i++)
                target_write(&s[i], 0, 100, 0);
        assert_exact(g, 33 + 200);
        assert_reads(g, 1, 15, QUALITY_EXACT);
        group_detach(g, group_find_target(g, s[2].pid));
        target_write(&s[1], 0, 1000, 0);
        target_write(&s[2], 0, 1000, 0);
        assert_exact(g, 1233);
        group_detach(g, group_find_target(g, s[1].pid));
        g_assert_cmpuint(g->n_parts, ==, 0);
        assert_exact(g, 1233);
        g_assert_cmpuint(g->past[0].value, ==, hits(1233));

        group_reset(g, 0);
        assert_reads(g, 0, 0, QUALITY_NOT_COUNTED);
        assert_reads(g, 1, 15, QUALITY_EXACT);
        for (size_t i = 0; i < G_N_ELEMENTS(s); i++)
                target_end(&s[i]);
}

static void test_detached_leaves_nothing_open(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 2, NULL);
        unsigned before;

        target_add_thread(&s, 0, 1);
        before = count_descriptors();
        for (int i = 0; i < 100; i++)
                group_detach(g, attach(g, &s, (GroupTarget){}));
        g_assert_cmpuint(count_descriptors(), ==, before);
        g_assert_cmpuint(group_n_descriptors(g), ==, 0);
}

static void test_descendants_are_each_targets_own(void) {
        _cleanup_(target_done) Target tree = target_new();
        _cleanup_(target_done) Target alone = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);

        (void) attach(g, &tree, (GroupTarget){ .descendants = true });
        (void) attach(g, &alone, (GroupTarget){});
        group_start(g);
        target_fork(&tree, 300, 0);
        target_fork(&alone, 5000, 0);
        assert_exact(g, 300);
        group_detach(g, group_find_target(g, tree.pid));
        target_fork(&tree, 300, 0);
        assert_exact(g, 300);
}

/* What an ioctl behind the group's back does stands for a thread that a start has missed. */
static void test_what_was_missed_is_reached_later(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);
        uint64_t due, now;
        int fd;

        (void) attach(g, &s, (GroupTarget){ .descendants = true });
        g_assert_cmpuint(group_gate_again(g, UINT64_MAX), ==, UINT64_MAX); /* not started yet */
        group_start(g);
        g_assert_cmpuint(group_descriptors(g, 0, &fd, 1), ==, 1);
        now = now_usec(CLOCK_MONOTONIC);
        due = group_gate_again(g, now);
        g_assert_cmpuint(due, <=, now + GATE_AGAIN_USEC);

        g_assert_cmpint(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), ==, 0);
        g_assert_cmpuint(group_gate_again(g, due - 1), ==, due);
        target_write(&s, 0, 10, 0);
        assert_reads(g, 0, 0, QUALITY_NOT_COUNTED);
        for (unsigned i = 1; i < GATE_AGAIN_TIMES; i++) {
                uint64_t again = group_gate_again(g, due);

                g_assert_cmpuint(again - due, ==, GATE_AGAIN_USEC << i);
                due = again;
                target_write(&s, 0, 10, 0);
                assert_exact(g, 10 * i);
        }
        g_assert_cmpuint(group_gate_again(g, due), ==, UINT64_MAX);

        group_stop(g);
        g_assert_cmpint(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), ==, 0);
        target_write(&s, 0, 1000, 0);
        g_assert_cmpuint(group_gate_again(g, due + GATE_AGAIN_USEC), <, UINT64_MAX);
        target_write(&s, 0, 1, 0);
        assert_exact(g, 10 * (GATE_AGAIN_TIMES - 1) + 1000);
}

/* Nothing can have been missed then. Children of a process that has some are not known. */
static void test_what_rests_is_reached_once(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(target_done) Target other = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);

        (void) attach(g, &s, (GroupTarget){});
        rest_await(s.pid);
        group_start(g);
        g_assert_cmpuint(group_gate_again(g, 0), ==, UINT64_MAX);
        target_write(&s, 0, 10, 0);
        assert_exact(g, 10);

        (void) attach(g, &other, (GroupTarget){ .descendants = true });
        rest_await(s.pid);
        rest_await(other.pid);
        group_stop(g);
        g_assert_cmpuint(group_gate_again(g, 0), <, UINT64_MAX);
        group_detach(g, group_find_target(g, other.pid));
        rest_await(s.pid);
        group_start(g);
        g_assert_cmpuint(group_gate_again(g, 0), ==, UINT64_MAX);

        target_add_thread(&s, 0, 1);
        target_order(&s, 1, (TargetOrder){ TARGET_ALTERNATE, 0, 2 });
        target_wait(&s);
        group_stop(g);
        g_assert_cmpuint(group_gate_again(g, 0), <, UINT64_MAX);
}

static void test_ended_target_is_not_found(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);
        Target other;

        (void) attach(g, &s, (GroupTarget){});
        g_assert_cmpuint(group_find_target(g, s.pid), ==, 0);
        g_assert_cmpuint(group_find_target(g, getpid()), ==, 1);
        target_kill(&s);
        g_assert_cmpuint(group_find_target(g, s.pid), ==, 1);
        /* nor when its number is reused */
        if (target_start_as(&other, s.pid)) {
                g_assert_cmpuint(group_find_target(g, s.pid), ==, 1);
                target_end(&other);
        }
        target_close(&s);
}

static void test_reaps_what_has_ended(void) {
        _cleanup_(target_done) Target ended = target_new();
        _cleanup_(target_done) Target tree = target_new();
        _cleanup_(target_done) Target alive = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);

        (void) attach(g, &ended, (GroupTarget){});
        (void) attach(g, &tree, (GroupTarget){ .descendants = true });
        (void) attach(g, &alive, (GroupTarget){});
        group_start(g);
        target_write(&ended, 0, 7, 0);
        group_reap(g, g->n_targets);
        g_assert_cmpuint(g->n_targets, ==, 3);
        target_kill(&ended);
        target_kill(&tree); /* its descendants may go on */
        group_reap(g, g->n_targets);
        g_assert_cmpuint(g->n_targets, ==, 2);
        g_assert_cmpuint(g->n_parts, ==, 2);
        target_write(&alive, 0, 20, 0);
        assert_exact(g, 27);
        target_close(&ended);
        target_close(&tree);
}

/* Whether somebody has noticed that it was dropped or not. */
static void test_detached_while_dropped_is_scaled(void) {
        for (int noticed = 0; noticed < 2; noticed++) {
                _cleanup_(target_done) Target s = target_new();
                _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);

                g->pinned = true;
                (void) attach(g, &s, (GroupTarget){});
                group_start(g);
                target_write(&s, 0, 10, 0);
                assert_exact(g, 10);
                close_fd(group_drop(g, 0));
                if (noticed)
                        g_assert_true(group_revive(g));
                assert_reads(g, 0, 10, QUALITY_NOT_COUNTED);
                group_detach(g, 0);
                assert_reads(g, 0, 10, QUALITY_SCALED);
        }
}

static void test_reaped_after_a_drop_is_scaled(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);
        int kept;

        g->pinned = true;
        (void) attach(g, &s, (GroupTarget){});
        group_start(g);
        target_write(&s, 0, 10, 0);
        kept = group_drop(g, 0);
        g_assert_true(group_revive(g));
        target_kill(&s);
        group_undrop(g, 0, kept); /* it can be read again */
        group_reap(g, 1);
        g_assert_cmpuint(g->n_targets, ==, 0);
        assert_reads(g, 0, 10, QUALITY_SCALED);
        target_close(&s);
}

/* The call that awaits it accepts or undoes it, and has to find it. One that a resume has opened
 * anew is looked up by the group. */
static void test_reaps_nothing_that_a_call_awaits(void) {
        _cleanup_(target_done) Target one = target_new(), two = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);

        (void) attach(g, &one, (GroupTarget){ .pending = &one });
        (void) attach(g, &two, (GroupTarget){ .pending = g });
        target_kill(&one);
        target_kill(&two);
        group_reap(g, g->n_targets);
        g_assert_cmpuint(g->n_targets, ==, 1);
        g_assert_true(g->targets[0].pending == &one);
        group_accept(g, 0);
        group_reap(g, g->n_targets);
        g_assert_cmpuint(g->n_targets, ==, 0);
        target_close(&one);
        target_close(&two);
}

/* A breakpoint is closed while it yields, so the kernel could not remove it when the process
 * executed a program that may not be counted. */
static void test_guarded_is_pending_again_when_it_was_opened_anew(void) {
        _cleanup_(target_done) Target guarded = target_new();
        _cleanup_(target_done) Target free = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);

        (void) attach(g, &guarded, (GroupTarget){ .guarded = true });
        (void) attach(g, &free, (GroupTarget){});
        group_start(g);
        target_write(&guarded, 0, 1, 0);
        target_write(&free, 0, 10, 0);
        group_yield(g);
        target_write(&guarded, 0, 1, 0);
        target_write(&free, 0, 10, 0);
        g_assert_cmpint(group_resume(g, NULL), ==, 0);
        g_assert_true(g->targets[0].pending == g);
        g_assert_null(g->targets[1].pending);
        target_write(&guarded, 0, 100, 0);
        target_write(&free, 0, 1000, 0);
        assert_exact(g, 1011);
        group_accept(g, 0);
        target_write(&guarded, 0, 20000, 0);
        assert_exact(g, 21011);
}

static void test_thread_that_has_ended_is_no_failure_while_pending(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 1, NULL);
        _cleanup_(threads_done) Threads threads = THREADS_NULL;

        target_add_thread(&s, 0, 1);
        g_assert_cmpint(threads_list(s.pid, &threads, NULL), ==, 0);
        target_end_thread(&s, 1);
        attach_threads(g, &s, (GroupTarget){ .pending = g }, &threads);
        assert_opens(g);
        g_assert_true(group_is_open_at(g, 0));
        group_detach(g, 0);

        /* but nothing is open when all have */
        target_kill(&s);
        attach_threads(g, &s, (GroupTarget){ .pending = g }, &threads);
        assert_opens(g);
        g_assert_false(group_is_open_at(g, 0));
        target_close(&s);
}

static void test_descriptors_of_an_event(void) {
        _cleanup_(target_done) Target s = target_new();
        _cleanup_(group_freep) Group *g = group_of(GROUP_PROCESS, 2, NULL);
        int fds[8];

        g_assert_cmpuint(group_descriptors(g, 0, fds, 8), ==, 0);
        for (unsigned i = 1; i < TARGET_THREADS; i++)
                target_add_thread(&s, 0, i);
        (void) attach(g, &s, (GroupTarget){});
        g_assert_cmpuint(group_descriptors(g, 1, fds, 8), ==, TARGET_THREADS);
        for (unsigned i = 0; i < TARGET_THREADS; i++)
                g_assert_cmpint(fds[i], ==, g->slots[i * 2 + 1].fd);
        /* at most as many as fit; the result is the number of all */
        fds[2] = -7;
        g_assert_cmpuint(group_descriptors(g, 0, fds, 2), ==, TARGET_THREADS);
        g_assert_cmpint(fds[2], ==, -7);
}

int main(int argc, char **argv) {
        static const GroupTest tests[] = {
                { "pending-does-not-count", test_pending_does_not_count },
                { "accepted-while-stopped-waits-for-the-start",
                  test_accepted_while_stopped_waits_for_the_start },
                { "detached-keeps-what-it-has-counted", test_detached_keeps_what_it_has_counted },
                { "detached-leaves-nothing-open", test_detached_leaves_nothing_open },
                { "descendants-are-each-target's-own", test_descendants_are_each_targets_own },
                { "what-was-missed-is-reached-later", test_what_was_missed_is_reached_later },
                { "what-rests-is-reached-once", test_what_rests_is_reached_once },
                { "ended-target-is-not-found", test_ended_target_is_not_found },
                { "reaps-what-has-ended", test_reaps_what_has_ended },
                { "detached-while-dropped-is-scaled", test_detached_while_dropped_is_scaled },
                { "reaped-after-a-drop-is-scaled", test_reaped_after_a_drop_is_scaled },
                { "reaps-nothing-that-a-call-awaits", test_reaps_nothing_that_a_call_awaits },
                { "guarded-is-pending-again-when-it-was-opened-anew",
                  test_guarded_is_pending_again_when_it_was_opened_anew },
                { "thread-that-has-ended-is-no-failure-while-pending",
                  test_thread_that_has_ended_is_no_failure_while_pending },
                { "descriptors-of-an-event", test_descriptors_of_an_event },
        };

        return group_tests_run(argc, argv, "/group-target/", tests, G_N_ELEMENTS(tests));
}

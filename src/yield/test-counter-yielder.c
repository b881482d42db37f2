/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The service's own monitors: real breakpoints that yield to holds of a real ledger.
 */

#include "yield/counter-yielder.h"

#include "perf/group/test-group.h"
#include "perf/pmu/perf-open.h"

typedef struct Stage {
        Ledger ledger;
        Yielders yielders;
        Scope scope; /* CPU 0 of breakpoint */
        LedgerHold hold;
        CounterYielder *monitor;
        unsigned n_changed;
} Stage;

static void on_acknowledged(void *userdata) {
        g_assert_not_reached(); /* it yields at once */
}

static void on_changed(void *userdata) {
        Stage *s = userdata;

        s->n_changed++;
}

static void stage_enroll(Stage *s, Group *g) {
        g_assert_cmpint(
                counter_yielder_new(&s->yielders, g, &s->scope, 0, PLAN_ALWAYS, 0, &s->monitor), ==,
                0);
        s->monitor->changed = on_changed;
        s->monitor->userdata = s;
        if (!g->yielded)
                assert_opens(g);
        group_start(g);
}

/* False, and the test is skipped: this user may not count CPUs. */
static bool stage_up(Stage *s, bool enrolled) {
        _cleanup_(cpuset_done) CpuSet cpus = cpus_of("0");
        Group *g = group_on_cpus("0");

        *s = (Stage){};
        if (!g)
                return false;
        ledger_init(&s->ledger);
        yielders_init(&s->yielders, &s->ledger, on_acknowledged, s);
        g_assert_cmpint(scope_add(&s->scope, g->events[0].pmu->index, &cpus), ==, 0);
        g_assert_cmpint(scope_copy(&s->hold.scope, &s->scope), ==, 0);
        if (enrolled)
                stage_enroll(s, g);
        else
                group_free(g);
        return true;
}

static void stage_down(Stage *s) {
        counter_yielder_free(s->monitor);
        yielders_done(&s->yielders);
        ledger_done(&s->ledger);
        scope_done(&s->scope);
        scope_done(&s->hold.scope);
}

static void stage_hold(Stage *s) {
        size_t n_told;

        g_assert_cmpint(ledger_admit(&s->ledger, &s->hold, false), ==, 0);
        g_assert_cmpint(yielders_apply(&s->yielders, 1, 0, &n_told), ==, 0);
}

static void stage_release(Stage *s) {
        ledger_remove(&s->ledger, &s->hold);
        g_assert_cmpint(yielders_apply(&s->yielders, 0, 0, NULL), ==, 0);
}

static void test_monitor_frees_its_counters_for_a_hold(void) {
        Stage s;

        if (!stage_up(&s, true))
                return;
        g_assert_cmpuint(slots_free(0), ==, SLOTS - 1);
        write_on_cpu(0, 5);
        stage_hold(&s);
        g_assert_cmpuint(slots_free(0), ==, SLOTS);
        g_assert_cmpuint(s.n_changed, ==, 1);
        write_on_cpu(0, 1000);
        assert_reads(s.monitor->group, 0, 5, QUALITY_NOT_COUNTED);
        stage_release(&s);
        g_assert_cmpuint(slots_free(0), ==, SLOTS - 1);
        g_assert_cmpuint(s.n_changed, ==, 2);
        write_on_cpu(0, 6);
        assert_exact(s.monitor->group, 11);
        stage_down(&s);
}

static void test_monitor_that_comes_into_a_hold_opens_nothing(void) {
        Stage s;

        if (!stage_up(&s, false))
                return;
        stage_hold(&s);
        stage_enroll(&s, group_on_cpus("0"));
        g_assert_true(s.monitor->group->yielded);
        g_assert_cmpuint(slots_free(0), ==, SLOTS);
        stage_release(&s);
        write_on_cpu(0, 6);
        assert_exact(s.monitor->group, 6);
        stage_down(&s);
}

static void test_monitor_that_cannot_go_on_is_tried_again(void) {
        int fds[SLOTS];
        Stage s;

        if (!stage_up(&s, true))
                return;
        g_assert_true(counter_yielder_retry(s.monitor));
        write_on_cpu(0, 5);
        stage_hold(&s);
        g_assert_cmpuint(slots_take(0, fds, SLOTS), ==, SLOTS);
        stage_release(&s);
        g_assert_cmpint(s.monitor->group->error, ==, ENOSPC);
        g_assert_false(counter_yielder_retry(s.monitor));
        g_assert_cmpuint(s.n_changed, ==, 2);
        slots_give(fds, SLOTS);
        g_assert_true(counter_yielder_retry(s.monitor));
        g_assert_cmpuint(s.n_changed, ==, 3);
        write_on_cpu(0, 6);
        assert_exact(s.monitor->group, 11);
        stage_down(&s);
}

/* The counters are held again: what failed before is no longer needed. */
static void test_monitor_in_error_is_left_alone_in_a_hold(void) {
        int fds[SLOTS];
        Stage s;

        if (!stage_up(&s, true))
                return;
        stage_hold(&s);
        g_assert_cmpuint(slots_take(0, fds, SLOTS), ==, SLOTS);
        stage_release(&s);
        stage_hold(&s);
        slots_give(fds, SLOTS);
        (void) counter_yielder_retry(s.monitor);
        g_assert_cmpint(s.monitor->group->error, ==, 0);
        g_assert_cmpuint(slots_free(0), ==, SLOTS);
        stage_release(&s);
        g_assert_cmpuint(slots_free(0), ==, SLOTS - 1);
        stage_down(&s);
}

#define N_SEVERAL 3u

static void several_enroll(Stage *s, CounterYielder *ret[N_SEVERAL]) {
        for (unsigned i = 0; i < N_SEVERAL; i++) {
                stage_enroll(s, group_on_cpus("0"));
                ret[i] = TAKE_PTR(s->monitor);
        }
}

static void several_free(CounterYielder *several[N_SEVERAL]) {
        for (unsigned i = 0; i < N_SEVERAL; i++)
                counter_yielder_free(several[i]);
}

static void open_counted(void *userdata, PerfOpen *opens, size_t n) {
        unsigned *n_messages = userdata;

        (*n_messages)++;
        perf_open_here(opens, n);
}

static void test_several_are_opened_by_one_message(void) {
        CounterYielder *several[N_SEVERAL];
        unsigned n_messages = 0;
        Stage s;

        if (!stage_up(&s, false))
                return;
        several_enroll(&s, several);
        write_on_cpu(0, 5);
        stage_hold(&s);
        perf_open_set(&(PerfOpener){ .open = open_counted, .userdata = &n_messages });
        stage_release(&s);
        perf_open_set(NULL);
        g_assert_cmpuint(n_messages, ==, 1);
        g_assert_cmpuint(slots_free(0), ==, SLOTS - N_SEVERAL);
        write_on_cpu(0, 6);
        for (unsigned i = 0; i < N_SEVERAL; i++)
                assert_exact(several[i]->group, 11);
        several_free(several);
        stage_down(&s);
}

static void test_one_that_cannot_go_on_does_not_keep_the_others(void) {
        CounterYielder *several[N_SEVERAL];
        int fds[SLOTS];
        Stage s;

        if (!stage_up(&s, false))
                return;
        several_enroll(&s, several);
        stage_hold(&s);
        g_assert_cmpuint(slots_take(0, fds, SLOTS - 2), ==, SLOTS - 2);
        stage_release(&s);
        g_assert_cmpuint(slots_free(0), ==, 0);
        write_on_cpu(0, 6);
        assert_exact(several[0]->group, 6);
        assert_exact(several[1]->group, 6);
        g_assert_cmpint(several[2]->group->error, ==, ENOSPC);
        slots_give(fds, SLOTS - 2);
        g_assert_true(counter_yielder_retry(several[2]));
        write_on_cpu(0, 7);
        assert_exact(several[2]->group, 7);
        several_free(several);
        stage_down(&s);
}

static void test_freed_monitor_is_told_no_more(void) {
        Stage s;

        if (!stage_up(&s, true))
                return;
        s.monitor = counter_yielder_free(s.monitor);
        g_assert_cmpuint(s.yielders.n_yielders, ==, 0);
        g_assert_cmpuint(slots_free(0), ==, SLOTS);
        stage_hold(&s);
        stage_release(&s);
        stage_down(&s);
}

static void test_monitor_says_whose_it_is(void) {
        Yielder *y;
        char who[256];
        pid_t pid;
        Stage s;

        if (!stage_up(&s, true))
                return;
        y = &s.monitor->yielder;
        y->ops->describe(y, &pid, who, sizeof(who));
        g_assert_cmpint(pid, ==, getpid());
        g_assert_nonnull(strstr(who, s.monitor->group->events[0].name));
        y->ops->describe(y, &pid, who, 10);
        g_assert_cmpuint(strlen(who), ==, 9);
        stage_down(&s);
}

int main(int argc, char **argv) {
        static const GroupTest tests[] = {
                { "monitor-frees-its-counters-for-a-hold",
                  test_monitor_frees_its_counters_for_a_hold },
                { "monitor-that-comes-into-a-hold-opens-nothing",
                  test_monitor_that_comes_into_a_hold_opens_nothing },
                { "monitor-that-cannot-go-on-is-tried-again",
                  test_monitor_that_cannot_go_on_is_tried_again },
                { "monitor-in-error-is-left-alone-in-a-hold",
                  test_monitor_in_error_is_left_alone_in_a_hold },
                { "several-are-opened-by-one-message", test_several_are_opened_by_one_message },
                { "one-that-cannot-go-on-does-not-keep-the-others",
                  test_one_that_cannot_go_on_does_not_keep_the_others },
                { "freed-monitor-is-told-no-more", test_freed_monitor_is_told_no_more },
                { "monitor-says-whose-it-is", test_monitor_says_whose_it_is },
        };

        return group_tests_run(argc, argv, "/counter-yielder/", tests, G_N_ELEMENTS(tests));
}

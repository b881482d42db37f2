/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The judge of the histories: what it says of holds of all, by what others had open. */

#include "history-log.h"

#include <sys/mman.h>

static const Machine machine = { .general = 6, .cycles = true };

static Verdict refused(const TakeLog *log, unsigned cpu) {
        const Demand d = { .cpus = 1u << cpu };

        return log_judge_refusal(log, &machine, &d, log_now(), log_now());
}

static TakeLog *log_with(unsigned cpu, TakeWhen when, bool opened, Take **ret) {
        TakeLog *log = log_new();

        *ret = log_open(log, &(Take){ .cpu = cpu, .when = when, .instructions = 2 });
        if (opened)
                (*ret)->opened = log_now();
        return log;
}

static void log_free(TakeLog *log) {
        munmap(log, sizeof(*log));
}

static void test_what_is_open_is_a_reason(void) {
        Take *t;
        TakeLog *log = log_with(1, TAKE_ALWAYS, true, &t);

        g_assert_cmpint(refused(log, 1), ==, VERDICT_TRUE);
        g_assert_cmpint(refused(log, 0), ==, VERDICT_FALSE);
        log_close(t);
        t->closed = t->closing;
        while (log_now() == t->closed)
                ;
        g_assert_cmpint(refused(log, 1), ==, VERDICT_FALSE);
        log_free(log);
}

static void test_what_a_cpu_took_with_it_is_none(void) {
        Take *t;
        TakeLog *log = log_with(1, TAKE_ALWAYS, true, &t);

        log_drop_cpu(log, 0);
        g_assert_cmpint(refused(log, 1), ==, VERDICT_TRUE);
        log_drop_cpu(log, 1);
        g_assert_cmpint(refused(log, 1), ==, VERDICT_FALSE);
        log_free(log);
}

/* It may be open on the CPU that comes back. */
static void test_what_is_being_opened_then_may_be_one(void) {
        Take *t;
        TakeLog *log = log_with(1, TAKE_ALWAYS, false, &t);

        log_drop_cpu(log, 1);
        g_assert_cmpint(refused(log, 1), ==, VERDICT_TRUE);
        g_assert_cmpint(refused(log, 0), ==, VERDICT_FALSE);
        log_free(log);
}

/* The kernel lets it run on all CPUs then, and does not put it back (sched_setaffinity(2)). */
static void test_a_task_that_lost_its_cpu_is_one_everywhere(void) {
        Take *t;
        TakeLog *log = log_with(1, TAKE_NOW_AND_THEN, true, &t);

        g_assert_cmpint(refused(log, 0), ==, VERDICT_FALSE);
        log_drop_cpu(log, 1);
        g_assert_cmpint(refused(log, 0), ==, VERDICT_TRUE);
        g_assert_cmpint(refused(log, 1), ==, VERDICT_TRUE);
        log_free(log);
}

/* A hold of both CPUs beside a hold of each, each of whose users has opened something in it. */
static void test_where_holders_count_cannot_be_told(void) {
        const Claim claims[] = { { .uid = 1, .cpus = 1, .granted = 1 },
                                 { .uid = 2, .cpus = 2, .granted = 1 } };
        const Demand d = { .cpus = 3, .claims = claims, .n_claims = 2 };
        TakeLog *log = log_new();
        uint64_t now;

        log_open(log, &(Take){ .uid = 1, .cpu = 0, .instructions = 3 })->opened = log_now();
        now = log_now();
        g_assert_cmpint(log_judge_refusal(log, &machine, &d, now, now), ==, VERDICT_FALSE);
        log_open(log, &(Take){ .uid = 2, .cpu = 1, .instructions = 3 })->opened = log_now();
        now = log_now();
        g_assert_cmpint(log_judge_refusal(log, &machine, &d, now, now), ==, VERDICT_UNKNOWABLE);
        log_free(log);
}

/* Who opens more than there are counters takes what was promised to them, and no more. */
static void test_more_events_than_counters_take_all_of_them(void) {
        const Claim claims[] = { { .uid = 1, .cpus = 1, .counters = 6, .granted = 1 },
                                 { .uid = 2, .cpus = 1, .counters = 1, .granted = 1 } };
        Demand d = { .cpus = 1, .claims = claims, .n_claims = 1 };
        TakeLog *log = log_new();

        log_open(log, &(Take){ .uid = 1, .cpu = 0, .instructions = 7 })->opened = 2;
        g_assert_cmpint(log_judge_grant(log, &machine, &d, log_now() + 2 * LOG_RACE_USEC), ==,
                        VERDICT_TRUE);
        d.n_claims = 2;
        g_assert_cmpint(log_judge_grant(log, &machine, &d, log_now() + 2 * LOG_RACE_USEC), ==,
                        VERDICT_FALSE);
        log_free(log);
}

/* Who has a hold of all beside a hold of six may ask for cycles, as long as nobody waits for a
 * counter before them. */
static void test_cycles_wait_behind_what_waits(void) {
        const Claim claim = { .uid = 1, .cpus = 1, .counters = 6, .granted = 1 };
        const Demand d = { .cpus = 1, .claims = &claim, .n_claims = 1 };
        TakeLog *log = log_new();
        bool cycles;

        log_open(log, &(Take){ .uid = 1, .cpu = 0, .instructions = 6 })->opened = 2;
        g_assert_cmpuint(log_needs(log, &machine, &d, 0, &cycles), ==, 0);
        g_assert_true(cycles);
        log_open(log, &(Take){ .uid = 1, .cpu = 0, .instructions = 1 })->opened = 2;
        g_assert_cmpuint(log_needs(log, &machine, &d, 0, &cycles), ==, 0);
        g_assert_false(cycles);
        log_free(log);
}

static Verdict granted_beside(bool of_service) {
        TakeLog *log = log_new();
        Take *t = log_open(log, &(Take){ .uid = 1, .cycles = 1, .of_service = of_service });
        const Claim claim = { .uid = 1, .cpus = 1, .granted = log_now() + LOG_RACE_USEC };
        const Demand d = { .cpus = 1, .counters = 4, .claims = &claim, .n_claims = 1 };
        uint64_t later = claim.granted + 2 * LOG_RACE_USEC;
        Verdict v;

        t->opened = log_now();
        v = log_judge_grant(log, &machine, &d, later);
        g_assert_cmpint(log_judge_refusal(log, &machine, &d, later, later), ==, VERDICT_TRUE);
        log_free(log);
        return v;
}

/* Of an earlier hold of the same user, that is. */
static void test_older_ones_may_be_opened_anew(void) {
        g_assert_cmpint(granted_beside(true), ==, VERDICT_RACE);
        g_assert_cmpint(granted_beside(false), ==, VERDICT_FALSE);
}

static void test_on_no_cpu_nothing_is_confirmed(void) {
        const Demand d = { .counters = 1 };
        TakeLog *log = log_new();

        g_assert_cmpint(log_judge_refusal(log, &machine, &d, 1, 2), ==, VERDICT_TRUE);
        g_assert_cmpint(log_judge_grant(log, &machine, &d, 2), ==, VERDICT_FALSE);
        log_free(log);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/history-log/what-is-open-is-a-reason", test_what_is_open_is_a_reason);
        g_test_add_func("/history-log/what-a-cpu-took-with-it-is-none",
                        test_what_a_cpu_took_with_it_is_none);
        g_test_add_func("/history-log/what-is-being-opened-then-may-be-one",
                        test_what_is_being_opened_then_may_be_one);
        g_test_add_func("/history-log/a-task-that-lost-its-cpu-is-one-everywhere",
                        test_a_task_that_lost_its_cpu_is_one_everywhere);
        g_test_add_func("/history-log/where-holders-count-cannot-be-told",
                        test_where_holders_count_cannot_be_told);
        g_test_add_func("/history-log/more-events-than-counters-take-all-of-them",
                        test_more_events_than_counters_take_all_of_them);
        g_test_add_func("/history-log/cycles-wait-behind-what-waits",
                        test_cycles_wait_behind_what_waits);
        g_test_add_func("/history-log/older-ones-may-be-opened-anew",
                        test_older_ones_may_be_opened_anew);
        g_test_add_func("/history-log/on-no-cpu-nothing-is-confirmed",
                        test_on_no_cpu_nothing_is_confirmed);
        return g_test_run();
}

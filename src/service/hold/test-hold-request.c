/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/hold/hold-request.h"

#include "perf/event/test-fake-sysfs.h"
#include "service/bus/test-message.h"

typedef struct Stage {
        Desert desert;
        FakeSysfs machine;
        sd_bus_message *m;
        HoldRequest q;
        Refusal why;
} Stage;

/* userdata: the fake sysfs. */
static void stage_up(Stage *s, gconstpointer userdata) {
        *s = (Stage){ .q = HOLD_REQUEST_NULL };
        desert_up(&s->desert);
        s->machine = fake_sysfs_of(fixture_tree(userdata));
}

static void stage_down(Stage *s, gconstpointer userdata) {
        hold_request_done(&s->q);
        sd_bus_message_unref(s->m);
        fake_sysfs_done(&s->machine);
        desert_down(&s->desert);
}

static int stage_call(Stage *s, const char *reason, const char *options) {
        hold_request_done(&s->q);
        sd_bus_message_unref(s->m);
        s->m = message_new(&s->desert);
        s->why = REFUSAL_NULL;
        g_assert_cmpint(sd_bus_message_append(s->m, "s", reason), >=, 0);
        message_open_options(s->m);
        message_write_options(s->m, options, s->desert.far_end);
        message_close_options(s->m);
        return hold_request_read(&s->machine.pmus, s->m, false, &s->q, &s->why);
}

static void assert_taken(Stage *s, const char *options) {
        int r = stage_call(s, "why not", options);

        if (r != 0)
                g_error("'%s': %d, %s", options, r, s->why.text);
}

static void assert_call_refused(Stage *s, const char *reason, const char *options,
                                const char *words) {
        g_assert_cmpint(stage_call(s, reason, options), ==, REFUSAL_INVALID_ARGS);
        g_assert_cmpint(s->why.code, ==, REFUSAL_INVALID_ARGS);
        if (!strstr(s->why.text, words))
                g_error("'%s': '%s' does not say %s", options, s->why.text, words);
        g_assert_null(s->q.reason);
        g_assert_cmpuint(s->q.what.scope.n_parts, ==, 0);
}

/* The CPUs of this PMU in the scope, as a list; NULL: none. The caller frees it. */
static char *cpus_in_scope(const Stage *s, const char *name) {
        const Pmu *pmu = pmu_table_find(&s->machine.pmus, name);
        const ScopePart *part = scope_find(&s->q.what.scope, pmu->index);
        char *list;

        if (!part)
                return NULL;
        g_assert_cmpint(cpuset_format(&part->cpus, &list), ==, 0);
        return list;
}

static void assert_cpus(const Stage *s, const char *pmu, const char *list) {
        g_autofree char *cpus = cpus_in_scope(s, pmu);

        g_assert_cmpstr(cpus, ==, list);
}

static void assert_pmus(const Stage *s, const char *names) {
        g_autofree char *joined = g_strjoinv(",", s->q.what.pmus);

        g_assert_cmpstr(joined, ==, names);
}

static void test_default_is_all_counters_of_the_core_pmus(Stage *s, gconstpointer unused) {
        assert_taken(s, "");
        g_assert_cmpstr(s->q.reason, ==, "why not");
        assert_pmus(s, "cpu_atom,cpu_core");
        g_assert_cmpstr(s->q.what.cpus, ==, "0-23");
        g_assert_cmpuint(s->q.what.scope.n_parts, ==, 2);
        assert_cpus(s, "cpu_core", "0-15");
        assert_cpus(s, "cpu_atom", "16-23");
        g_assert_cmpuint(s->q.counters, ==, 0);
        g_assert_false(s->q.exclusive);
        g_assert_false(s->q.best_effort);
        g_assert_false(s->q.unattended);
        g_assert_cmpuint(s->q.wait_usec, ==, 0);
        g_assert_cmpuint(s->q.yield_usec, ==, 500000);
        g_assert_cmpuint(s->q.lifetime_usec, ==, UINT64_MAX);
}

/* One whose CPUs have never run: nothing of them would be measured. */
static void test_nothing_is_no_hold(Stage *s, gconstpointer unused) {
        assert_taken(s, "cpus s 20");
        cpuset_clear(&pmu_table_find(&s->machine.pmus, "cpu_atom")->cpus);
        assert_call_refused(s, "why not", "cpus s 20", "no core PMU counts on any of them");
        assert_taken(s, "cpus s 1,20");
        assert_cpus(s, "cpu_core", "1");
}

static void test_every_option_is_read(Stage *s, gconstpointer unused) {
        assert_taken(s, "pmus as power,breakpoint|cpus s 0-1,23|counters u 3|mode s exclusive|"
                        "wait_usec t 18446744073709551615|yield_usec t 7|best_effort b yes");
        assert_pmus(s, "breakpoint,power");
        g_assert_cmpstr(s->q.what.cpus, ==, "0-1,23");
        assert_cpus(s, "breakpoint", "0-1,23");
        assert_cpus(s, "power", "0");
        assert_cpus(s, "cpu_core", NULL);
        g_assert_cmpuint(s->q.counters, ==, 3);
        g_assert_true(s->q.exclusive);
        g_assert_cmpuint(s->q.wait_usec, ==, UINT64_MAX);
        g_assert_cmpuint(s->q.yield_usec, ==, 7);
        g_assert_true(s->q.best_effort);
}

static void test_what_is_wrong_is_named(Stage *s, gconstpointer unused) {
        static const struct {
                const char *options, *words;
        } cases[] = {
                { "pmu s cpu_core", "'pmu'" },
                { "pmus s cpu_core", "'pmus'" },
                { "pmus as nonesuch", "'nonesuch'" },
                { "pmus as nonesuch", "cpu_core" },
                { "pmus as cpu_core,", "no PMU ''" },
                { "pmus as", "is empty" },
                { "cpus s ", "is empty" },
                { "cpus s 24", "no CPU 24" },
                { "cpus s 0-24", "no CPU 24" },
                { "cpus s 0-", "'cpus'" },
                { "cpus s x", "'cpus'" },
                { "cpus s 3-1", "'cpus'" },
                { "cpus s 99999999999", "'cpus'" },
                { "cpus u 3", "'cpus'" },
                { "pmus as cpu_atom|cpus s 0-15", "cpu_atom" },
                { "mode s Shared", "'Shared'" },
                { "mode s ", "shared, exclusive" },
                { "counters t 3", "'counters'" },
                { "wait_usec u 3", "'wait_usec'" },
                { "yield_usec s soon", "'yield_usec'" },
                { "best_effort s yes", "'best_effort'" },
                { "uid t 3", "'uid'" },
                { "uid u 4294967295", "'uid'" },
                { "tag u 3", "'tag'" },
                { "tag s ", "'tag' is empty" },
                { "cgroup s x", "'cgroup'" },
                { "pidfd u 3", "'pidfd'" },
                { "counters u 1|counters u 1", "'counters'" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                assert_call_refused(s, "why not", cases[i].options, cases[i].words);
}

static void test_reason_is_short_and_printable(Stage *s, gconstpointer unused) {
        g_autofree char *longest = g_strnfill(HOLD_REASON_MAX, 'x');
        g_autofree char *longer = g_strnfill(HOLD_REASON_MAX + 1, 'x');

        g_assert_cmpint(stage_call(s, longest, ""), ==, 0);
        g_assert_cmpint(stage_call(s, "", ""), ==, 0);
        g_assert_cmpint(stage_call(s, "\303\244\342\202\254", ""), ==, 0);
        assert_call_refused(s, longer, "", "more than 1024 bytes");
        assert_call_refused(s, "a\nb", "", "control character at byte 1");
        assert_call_refused(s, "\033[2J", "", "control character at byte 0");
        assert_call_refused(s, "a\177", "", "control character");
}

static void test_pmu_that_has_none_of_the_cpus_is_left_out(Stage *s, gconstpointer unused) {
        assert_taken(s, "cpus s 3-4");
        assert_pmus(s, "cpu_core");
        assert_cpus(s, "cpu_core", "3-4");
        assert_cpus(s, "cpu_atom", NULL);
}

static void test_pmu_named_twice_is_held_once(Stage *s, gconstpointer unused) {
        assert_taken(s, "pmus as cpu_core,cpu_core");
        assert_pmus(s, "cpu_core");
        g_assert_cmpuint(s->q.what.scope.n_parts, ==, 1);
}

/* A client may send millions of names, valid ones too. */
static void test_many_names_are_refused(Stage *s, gconstpointer unused) {
        s->m = message_new(&s->desert);
        g_assert_cmpint(sd_bus_message_append(s->m, "s", "why not"), >=, 0);
        message_open_options(s->m);
        message_option_strings(s->m, "pmus", "cpu_core", 300000);
        message_close_options(s->m);
        g_assert_cmpint(hold_request_read(&s->machine.pmus, s->m, false, &s->q, &s->why), ==,
                        REFUSAL_INVALID_ARGS);
        g_assert_nonnull(strstr(s->why.text, "'pmus'"));
}

static void test_more_counters_than_there_are_is_refused_where_known(Stage *s,
                                                                     gconstpointer unused) {
        Pmu *core = pmu_table_find(&s->machine.pmus, "cpu_core");

        assert_taken(s, "counters u 4294967295");
        core->counters = 8;
        core->measured = true;
        assert_taken(s, "counters u 8");
        assert_call_refused(s, "why not", "counters u 9",
                            "9 is more than the 8 general counters of each CPU of PMU cpu_core");
        assert_taken(s, "counters u 9|cpus s 16-17"); /* others' counters */
        core->counters = 0;                           /* without a limit */
        assert_taken(s, "counters u 9");
}

static void test_lifetime_of_0_is_until_it_is_released(Stage *s, gconstpointer unused) {
        static const struct {
                uint64_t asked, read;
        } cases[] = { { 0, UINT64_MAX }, { 1, 1 }, { UINT64_MAX, UINT64_MAX } };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                sd_bus_message_unref(s->m);
                s->m = message_new(&s->desert);
                g_assert_cmpint(sd_bus_message_append(s->m, "st", "why not", cases[i].asked), >=,
                                0);
                message_open_options(s->m);
                message_close_options(s->m);
                hold_request_done(&s->q);
                g_assert_cmpint(hold_request_read(&s->machine.pmus, s->m, true, &s->q, NULL), ==,
                                0);
                g_assert_true(s->q.unattended);
                g_assert_cmpuint(s->q.lifetime_usec, ==, cases[i].read);
        }
}

static void test_for_whom_is_the_callers_without_an_option(Stage *s, gconstpointer unused) {
        assert_taken(s, "");
        g_assert_false(s->q.on_behalf);
        g_assert_cmpuint(s->q.uid, ==, HOLD_UID_CALLER);
        g_assert_cmpstr(s->q.tag, ==, "");
        g_assert_cmpint(s->q.tie.kind, ==, HOLD_TIE_NONE);
        assert_taken(s, "uid u 0");
        g_assert_true(s->q.on_behalf);
        g_assert_cmpuint(s->q.uid, ==, 0);
        assert_taken(s, "tag s job-7");
        g_assert_true(s->q.on_behalf);
        g_assert_cmpuint(s->q.uid, ==, HOLD_UID_CALLER);
        g_assert_cmpstr(s->q.tag, ==, "job-7");
}

static bool equals(Stage *s, const char *a, const char *b) {
        HoldRequest first;
        bool equal;

        assert_taken(s, a);
        first = s->q;
        s->q = HOLD_REQUEST_NULL;
        assert_taken(s, b);
        equal = hold_request_equal(&first, &s->q);
        hold_request_done(&first);
        return equal;
}

/* What the hold is called, and how long one waits for it, may differ. */
static void test_equal_requests_are_for_the_same_counters(Stage *s, gconstpointer unused) {
        g_assert_true(equals(s, "", "best_effort b yes|wait_usec t 7|yield_usec t 7"));
        g_assert_true(equals(s, "cpus s 0-23", "pmus as cpu_core,cpu_atom"));
        g_assert_false(equals(s, "", "counters u 1"));
        g_assert_false(equals(s, "", "mode s exclusive"));
        g_assert_false(equals(s, "", "uid u 1"));
        g_assert_false(equals(s, "uid u 2", "uid u 1"));
        g_assert_false(equals(s, "", "cpus s 0-3"));
        g_assert_false(equals(s, "pmus as breakpoint", "pmus as breakpoint,power"));
        g_assert_false(equals(s, "pmus as breakpoint", "pmus as power"));
}

static void test_message_may_be_read_again(Stage *s, gconstpointer unused) {
        assert_taken(s, "counters u 3");
        hold_request_done(&s->q);
        g_assert_cmpint(hold_request_read(&s->machine.pmus, s->m, false, &s->q, NULL), ==, 0);
        g_assert_cmpuint(s->q.counters, ==, 3);
}

static void test_message_of_another_kind_is_a_fault(Stage *s, gconstpointer unused) {
        s->m = message_new(&s->desert);
        g_assert_cmpint(sd_bus_message_append(s->m, "u", 7), >=, 0);
        message_seal(s->m);
        g_assert_cmpint(hold_request_read(&s->machine.pmus, s->m, false, &s->q, &s->why), <, 0);
}

static void take_core_pmus_away(Stage *s) {
        for (size_t i = 0; i < s->machine.pmus.n_pmus; i++)
                if (s->machine.pmus.pmus[i].kind == PMU_CORE)
                        s->machine.pmus.pmus[i].kind = PMU_OTHER;
}

static void test_machine_without_core_pmus_has_an_empty_scope(Stage *s, gconstpointer unused) {
        take_core_pmus_away(s);
        assert_taken(s, "");
        g_assert_cmpuint(s->q.what.scope.n_parts, ==, 0);
        assert_pmus(s, "");
        g_assert_cmpstr(s->q.what.cpus, ==, "0-23");
}

static void assert_nothing_to_hold(Stage *s, const char *options, const char *words) {
        g_assert_cmpint(stage_call(s, "why not", options), ==, REFUSAL_NOT_SUPPORTED);
        g_assert_nonnull(strstr(s->why.text, words));
        g_assert_nonnull(strstr(s->why.text, "nothing to hold; option 'pmus'"));
        g_assert_null(s->q.reason);
}

static void test_some_counters_of_nothing_are_refused(Stage *s, gconstpointer unused) {
        take_core_pmus_away(s);
        assert_nothing_to_hold(s, "counters u 1", "no core PMU,");
        assert_nothing_to_hold(s, "mode s exclusive|best_effort b yes", "no core PMU,");
        assert_nothing_to_hold(s, "mode s exclusive|cpus s 0-3", "on these CPUs");
        assert_taken(s, "mode s shared|counters u 0|cpus s 0-3");
        assert_taken(s, "mode s exclusive|counters u 1|pmus as breakpoint");
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                void (*test)(Stage *s, gconstpointer unused);
        } tests[] = {
                { "default-is-all-counters-of-the-core-pmus",
                  test_default_is_all_counters_of_the_core_pmus },
                { "of-nothing-is-refused", test_nothing_is_no_hold },
                { "every-option-is-read", test_every_option_is_read },
                { "what-is-wrong-is-named", test_what_is_wrong_is_named },
                { "reason-is-short-and-printable", test_reason_is_short_and_printable },
                { "pmu-that-has-none-of-the-cpus-is-left-out",
                  test_pmu_that_has_none_of_the_cpus_is_left_out },
                { "pmu-named-twice-is-held-once", test_pmu_named_twice_is_held_once },
                { "many-names-are-refused", test_many_names_are_refused },
                { "more-counters-than-there-are-is-refused-where-known",
                  test_more_counters_than_there_are_is_refused_where_known },
                { "lifetime-of-0-is-until-it-is-released",
                  test_lifetime_of_0_is_until_it_is_released },
                { "for-whom-is-the-callers-without-an-option",
                  test_for_whom_is_the_callers_without_an_option },
                { "equal-requests-are-for-the-same-counters",
                  test_equal_requests_are_for_the_same_counters },
                { "message-may-be-read-again", test_message_may_be_read_again },
                { "message-of-another-kind-is-a-fault", test_message_of_another_kind_is_a_fault },
                { "machine-without-core-pmus-has-an-empty-scope",
                  test_machine_without_core_pmus_has_an_empty_scope },
                { "some-counters-of-nothing-are-refused",
                  test_some_counters_of_nothing_are_refused },
        };

        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
                g_autofree char *path = g_strconcat("/hold-request/", tests[i].name, NULL);

                g_test_add(path, Stage, "intel-hybrid", stage_up, tests[i].test, stage_down);
        }
        return g_test_run();
}

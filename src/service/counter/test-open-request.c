/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/counter/open-request.h"

#include <fcntl.h>

#include "machine.h"
#include "perf/event/test-fake-sysfs.h"
#include "service/auth/action.h"
#include "service/bus/test-message.h"
#include "service/counter/open-call.h"

#define ALICE 1000u

/* of the fake sysfs below */
#define CORE       "cpu_core/event=0xc0/"
#define ATOM       "cpu_atom/event=0xc0/"
#define UNCORE     "uncore_cbox_0/event=1/"
#define BREAKPOINT "mem:0x1000/8:w:u"
#define ANY_THREAD "cpu_core/config=0x20003c/u"
#define OTHER      "msr/config=0/u"

typedef struct Stage {
        Desert desert;
        Context context; /* its PMUs alone */
        char *tree;
        sd_bus_message *m;
        OpenRequest q;
        Refusal why;
} Stage;

/* userdata: the fake sysfs. */
static void stage_up(Stage *s, gconstpointer userdata) {
        *s = (Stage){ .q = OPEN_REQUEST_NULL, .tree = fixture_tree(userdata) };
        desert_up(&s->desert);
        g_assert_cmpint(pmu_table_load(&s->context.pmus, s->tree), ==, 0);
}

static void stage_down(Stage *s, gconstpointer userdata) {
        open_request_done(&s->q);
        sd_bus_message_unref(s->m);
        pmu_table_done(&s->context.pmus);
        fixture_done(s->tree);
        desert_down(&s->desert);
}

static int stage_read(Stage *s, uid_t uid) {
        const Peer peer = { .uid = uid, .root = uid == 0 };

        s->why = REFUSAL_NULL;
        open_request_done(&s->q);
        return open_request_read(&s->context, s->m, &peer, &s->q, &s->why);
}

/* Events are joined by blanks. */
static int stage_call(Stage *s, uid_t uid, const char *events, const char *options, int fd) {
        g_auto(GStrv) names = g_strsplit(events, " ", -1);

        sd_bus_message_unref(s->m);
        s->m = message_new(&s->desert);
        g_assert_cmpint(sd_bus_message_append_strv(s->m, names), >=, 0);
        message_open_options(s->m);
        message_write_options(s->m, options, fd);
        message_close_options(s->m);
        return stage_read(s, uid);
}

static void assert_taken(Stage *s, const char *events, const char *options) {
        int r = stage_call(s, ALICE, events, options, s->desert.far_end);

        if (r != 0)
                g_error("%s '%s': %d, %s", events, options, r, s->why.text);
}

static void assert_call_refused(Stage *s, const char *events, const char *options, int code,
                                const char *words) {
        int r = stage_call(s, ALICE, events, options, s->desert.far_end);

        g_test_message("%s", s->why.text);
        if (r != code || !strstr(s->why.text, words))
                g_error("%s '%s': %d, '%s' does not say %s", events, options, r, s->why.text,
                        words);
        g_assert_cmpint(s->why.code, ==, code);
        g_assert_null(s->q.events);
        g_assert_true(cpuset_is_empty(&s->q.cpus));
}

static void assert_cpus(const Stage *s, const char *list) {
        g_autofree char *cpus = NULL;

        g_assert_cmpint(cpuset_format(&s->q.cpus, &cpus), ==, 0);
        g_assert_cmpstr(cpus, ==, list);
}

static void test_default_is_the_caller_and_starts_at_once(Stage *s, gconstpointer unused) {
        assert_taken(s, CORE " page-faults:u", "");
        g_assert_cmpuint(s->q.n_events, ==, 2);
        g_assert_cmpstr(s->q.events[0].name, ==, CORE);
        g_assert_cmpstr(s->q.events[1].name, ==, "page-faults:u");
        g_assert_cmpint(s->q.scope, ==, GROUP_PROCESS);
        g_assert_cmpuint(s->q.pid, ==, 0);
        g_assert_cmpint(s->q.pidfd, ==, -1);
        g_assert_cmpint(s->q.cgroup, ==, -1);
        g_assert_true(s->q.attach);
        g_assert_true(s->q.start);
        g_assert_false(s->q.descendants || s->q.group || s->q.pinned || s->q.monitor ||
                       s->q.persistent);
        g_assert_cmpint(s->q.yields_to, ==, PLAN_ALWAYS);
        g_assert_null(s->q.name);
}

static void test_every_option_of_a_process_is_read(Stage *s, gconstpointer unused) {
        assert_taken(
                s, CORE,
                "scope s process|pid u 42|descendants b yes|group b yes|role s monitor|"
                "priority u 4294967295|yield s always|name s mine|start b no|persistent b yes");
        g_assert_cmpuint(s->q.pid, ==, 42);
        g_assert_true(s->q.descendants && s->q.group && s->q.monitor && s->q.persistent);
        g_assert_false(s->q.start);
        g_assert_cmpuint(s->q.priority, ==, UINT32_MAX);
        g_assert_cmpstr(s->q.name, ==, "mine");
        assert_taken(s, CORE, "pidfd h|pinned b yes");
        g_assert_cmpint(s->q.pidfd, >=, 0);
        g_assert_true(s->q.pinned);
        assert_taken(s, CORE, "attach b no");
        g_assert_false(s->q.attach);
}

static void test_what_is_wrong_is_named(Stage *s, gconstpointer unused) {
        static const struct {
                const char *options;
                int code;
                const char *words;
        } cases[] = {
                { "cpu s 0", REFUSAL_INVALID_ARGS, "'cpu'" },
                { "scope s thread", REFUSAL_INVALID_ARGS, "process, cpu, cgroup" },
                { "role s watcher", REFUSAL_INVALID_ARGS, "foreground, monitor" },
                { "yield s always", REFUSAL_INVALID_ARGS, "'yield' needs role monitor" },
                { "priority u 1", REFUSAL_INVALID_ARGS, "'priority' needs role monitor" },
                { "role s monitor|yield s later", REFUSAL_INVALID_ARGS, "'later'" },
                { "role s monitor|yield s never", REFUSAL_ACCESS_DENIED, "root" },
                { "role s monitor|yield s exclusive", REFUSAL_ACCESS_DENIED, "root" },
                { "cpus s 0", REFUSAL_INVALID_ARGS, "'cpus' cannot be used with scope process" },
                { "cgroup h", REFUSAL_INVALID_ARGS, "'cgroup' cannot be used with scope process" },
                { "scope s cpu|pid u 1", REFUSAL_INVALID_ARGS, "'pid' cannot be used" },
                { "scope s cpu|pidfd h", REFUSAL_INVALID_ARGS, "'pidfd' cannot be used" },
                { "scope s cpu|descendants b yes", REFUSAL_INVALID_ARGS, "'descendants'" },
                { "scope s cpu|descendants b no", REFUSAL_INVALID_ARGS, "'descendants'" },
                { "scope s cpu|attach b no", REFUSAL_INVALID_ARGS, "'attach'" },
                { "scope s cgroup", REFUSAL_INVALID_ARGS, "needs option 'cgroup'" },
                { "pid u 1|pidfd h", REFUSAL_INVALID_ARGS, "'pidfd' exclude each other" },
                { "pid u 0", REFUSAL_INVALID_PROCESS, "0 is not a process" },
                { "pid u 2147483648", REFUSAL_INVALID_PROCESS, "2147483648 is not a process" },
                { "pid u 4294967295", REFUSAL_INVALID_PROCESS, "not a process" },
                { "attach b no|pid u 1", REFUSAL_INVALID_ARGS, "'pid'" },
                { "attach b no|pidfd h", REFUSAL_INVALID_ARGS, "'pidfd'" },
                { "pinned b yes|descendants b yes", REFUSAL_INVALID_ARGS, "'pinned'" },
                { "scope s cpu|cpus s ", REFUSAL_INVALID_ARGS, "is empty" },
                { "scope s cpu|cpus s 24", REFUSAL_INVALID_ARGS, "no CPU 24" },
                { "scope s cpu|cpus s 0,x", REFUSAL_INVALID_ARGS, "'cpus'" },
                { "name s a\tb", REFUSAL_INVALID_ARGS, "'name'" },
                { "start u 1", REFUSAL_INVALID_ARGS, "'start' has type 'u'" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
                assert_call_refused(s, CORE, cases[i].options, cases[i].code, cases[i].words);
}

/* The kernel tells what is a cgroup, and an ordinary user not even that. */
static void test_what_is_no_cgroup_is_named(Stage *s, gconstpointer unused) {
        if (!machine_lacks(MACHINE_ROOT | MACHINE_EVENTS))
                assert_call_refused(s, CORE, "scope s cgroup|cgroup h", REFUSAL_BAD_DESCRIPTOR,
                                    "'cgroup'");
}

static void test_root_may_have_monitors_that_do_not_yield(Stage *s, gconstpointer unused) {
        g_assert_cmpint(stage_call(s, 0, CORE, "role s monitor|yield s never", -1), ==, 0);
        g_assert_cmpint(s->q.yields_to, ==, PLAN_NEVER);
        g_assert_cmpint(stage_call(s, 0, CORE, "role s monitor|yield s exclusive", -1), ==, 0);
        g_assert_cmpint(s->q.yields_to, ==, PLAN_EXCLUSIVE);
}

static void test_name_has_at_most_128_bytes(Stage *s, gconstpointer unused) {
        g_autofree char *name = g_strnfill(128, 'n');
        g_autofree char *longest = g_strconcat("name s ", name, NULL);
        g_autofree char *longer = g_strconcat(longest, "n", NULL);

        assert_taken(s, CORE, longest);
        g_assert_cmpstr(s->q.name, ==, name);
        assert_call_refused(s, CORE, longer, REFUSAL_INVALID_ARGS, "'name'");
}

static void test_events_are_some_and_not_too_many(Stage *s, gconstpointer unused) {
        for (unsigned n = 0; n <= OPEN_EVENTS_MAX + 1; n += (n == 0 ? OPEN_EVENTS_MAX : 1)) {
                int code = n == 0                ? REFUSAL_INVALID_ARGS
                           : n > OPEN_EVENTS_MAX ? REFUSAL_LIMITS_EXCEEDED
                                                 : 0;

                sd_bus_message_unref(s->m);
                s->m = message_new(&s->desert);
                g_assert_cmpint(sd_bus_message_open_container(s->m, 'a', "s"), >=, 0);
                for (unsigned i = 0; i < n; i++)
                        g_assert_cmpint(sd_bus_message_append_basic(s->m, 's', "page-faults"), >=,
                                        0);
                g_assert_cmpint(sd_bus_message_close_container(s->m), >=, 0);
                message_open_options(s->m);
                message_close_options(s->m);
                g_assert_cmpint(stage_read(s, ALICE), ==, code);
                g_assert_cmpuint(s->q.n_events, ==, code == 0 ? n : 0);
        }
}

static void test_event_that_is_none_is_named(Stage *s, gconstpointer unused) {
        assert_call_refused(s, CORE " cpu_core/nonesuch/ " CORE, "", REFUSAL_NO_SUCH_EVENT,
                            "nonesuch");
        assert_call_refused(s, CORE " ", "", REFUSAL_INVALID_EVENT, "without a name");
}

/* ---- which CPUs ---- */

static void test_cpus_are_those_of_the_pmu(Stage *s, gconstpointer unused) {
        assert_taken(s, CORE, "scope s cpu");
        assert_cpus(s, "0-15");
        g_assert_false(s->q.has_cpus);
        assert_taken(s, ATOM, "scope s cpu");
        assert_cpus(s, "16-23");
        assert_taken(s, UNCORE, "scope s cpu");
        assert_cpus(s, "0");
        assert_taken(s, "page-faults " BREAKPOINT, "scope s cpu");
        assert_cpus(s, "0-23");
        assert_taken(s, ATOM, "scope s cpu|cpus s 17,20-21");
        assert_cpus(s, "17,20-21");
        g_assert_true(s->q.has_cpus);
}

static void test_cpus_by_name_must_be_those_of_the_pmu(Stage *s, gconstpointer unused) {
        assert_call_refused(s, CORE, "scope s cpu|cpus s 15-16", REFUSAL_NOT_ON_THIS_CPU,
                            "cpu_core");
        assert_call_refused(s, "page-faults " UNCORE, "scope s cpu|cpus s 0-1",
                            REFUSAL_NOT_ON_THIS_CPU, "uncore_cbox_0");
        assert_taken(s, "page-faults " UNCORE, "scope s cpu|cpus s 0");
}

/* The second event would silently take CPUs from the first. */
static void test_events_of_different_cpus_are_not_narrowed(Stage *s, gconstpointer unused) {
        assert_call_refused(s, CORE " " ATOM, "scope s cpu", REFUSAL_INVALID_EVENT, "cpu_atom");
        assert_call_refused(s, "page-faults " UNCORE, "scope s cpu", REFUSAL_INVALID_EVENT,
                            "uncore_cbox_0");
        assert_call_refused(s, UNCORE " page-faults", "scope s cpu", REFUSAL_INVALID_EVENT,
                            "software");
        assert_taken(s, CORE " " CORE, "scope s cpu");
}

static void test_pmu_without_cpus_is_refused(Stage *s, gconstpointer unused) {
        assert_call_refused(s, "uncore_hbm_0/config=1/", "scope s cpu", REFUSAL_NOT_ON_THIS_CPU,
                            "uncore_hbm_0");
}

static void test_shared_unit_counts_no_process(Stage *s, gconstpointer unused) {
        assert_call_refused(s, UNCORE, "", REFUSAL_INVALID_EVENT, "scope cpu");
}

static void test_closing_monitor_has_no_descendants(Stage *s, gconstpointer unused) {
        assert_call_refused(s, BREAKPOINT, "role s monitor|descendants b yes", REFUSAL_INVALID_ARGS,
                            "'descendants'");
        assert_taken(s, BREAKPOINT, "descendants b yes");
        assert_taken(s, BREAKPOINT, "role s monitor");
        assert_taken(s, CORE, "role s monitor|descendants b yes");
}

/* ---- what it takes ---- */

static void test_actions_follow_from_events_and_scope(Stage *s, gconstpointer unused) {
        static const struct {
                const char *events, *options;
                unsigned actions, untraceable;
        } cases[] = {
                { "cpu_core/event=1/u", "", ACTION_COUNT_OWN, ACTION_COUNT_OTHER },
                { BREAKPOINT, "", ACTION_COUNT_OWN, ACTION_COUNT_OTHER },
                { "mem:0x1000", "", ACTION_COUNT_OWN, ACTION_COUNT_OTHER },
                { "mem:0xffffffff81000000", "", ACTION_COUNT_KERNEL, ACTION_COUNT_OTHER },
                { "cycles:u", "", ACTION_COUNT_OWN, ACTION_COUNT_OTHER },
                { "cycles", "", ACTION_COUNT_KERNEL, ACTION_COUNT_OTHER },
                { OTHER, "", ACTION_COUNT_KERNEL, ACTION_COUNT_OTHER },
#if defined(__x86_64__) || defined(__i386__)
                { ANY_THREAD, "", ACTION_COUNT_SYSTEM, ACTION_COUNT_OTHER | ACTION_COUNT_SYSTEM },
                { BREAKPOINT " " ANY_THREAD, "", ACTION_COUNT_SYSTEM,
                  ACTION_COUNT_OTHER | ACTION_COUNT_SYSTEM },
                { ANY_THREAD, "scope s cpu", ACTION_COUNT_SYSTEM, ACTION_COUNT_SYSTEM },
#endif
                { CORE, "", ACTION_COUNT_KERNEL, ACTION_COUNT_OTHER },
                { "cpu_core/event=1/k", "", ACTION_COUNT_KERNEL, ACTION_COUNT_OTHER },
                { "cpu_core/event=1/u " CORE, "", ACTION_COUNT_KERNEL, ACTION_COUNT_OTHER },
                { CORE " cpu_core/event=1/u", "", ACTION_COUNT_KERNEL, ACTION_COUNT_OTHER },
                { "cpu_core/event=1/u", "scope s cpu", ACTION_COUNT_SYSTEM, ACTION_COUNT_SYSTEM },
                { CORE, "role s monitor", ACTION_COUNT_KERNEL | ACTION_MONITOR,
                  ACTION_COUNT_OTHER | ACTION_MONITOR },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
                assert_taken(s, cases[i].events, cases[i].options);
                g_assert_cmphex(open_request_actions(&s->q, false), ==, cases[i].actions);
                g_assert_cmphex(open_request_actions(&s->q, true), ==, cases[i].untraceable);
        }
}

typedef struct OpeningTest {
        const char *name, *machine;
        void (*test)(Stage *s, gconstpointer unused);
} OpeningTest;

int main(int argc, char **argv) {
        static const OpeningTest tests[] = {
                { "default-is-the-caller-and-starts-at-once", NULL,
                  test_default_is_the_caller_and_starts_at_once },
                { "every-option-of-a-process-is-read", NULL,
                  test_every_option_of_a_process_is_read },
                { "what-is-wrong-is-named", NULL, test_what_is_wrong_is_named },
                { "root-may-have-monitors-that-do-not-yield", NULL,
                  test_root_may_have_monitors_that_do_not_yield },
                { "name-has-at-most-128-bytes", NULL, test_name_has_at_most_128_bytes },
                { "events-are-some-and-not-too-many", NULL, test_events_are_some_and_not_too_many },
                { "event-that-is-none-is-named", NULL, test_event_that_is_none_is_named },
                { "cpus-are-those-of-the-pmu", NULL, test_cpus_are_those_of_the_pmu },
                { "cpus-by-name-must-be-those-of-the-pmu", NULL,
                  test_cpus_by_name_must_be_those_of_the_pmu },
                { "events-of-different-cpus-are-not-narrowed", NULL,
                  test_events_of_different_cpus_are_not_narrowed },
                { "pmu-without-cpus-is-refused", "server-256", test_pmu_without_cpus_is_refused },
                { "shared-unit-counts-no-process", NULL, test_shared_unit_counts_no_process },
                { "closing-monitor-has-no-descendants", NULL,
                  test_closing_monitor_has_no_descendants },
                { "actions-follow-from-events-and-scope", NULL,
                  test_actions_follow_from_events_and_scope },
        };

        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
                g_autofree char *path = g_strconcat("/open-request/", tests[i].name, NULL);

                g_test_add(path, Stage, tests[i].machine ? tests[i].machine : "intel-hybrid",
                           stage_up, tests[i].test, stage_down);
        }
        g_test_add("/machine/open-request/what-is-no-cgroup-is-named", Stage, "intel-hybrid",
                   stage_up, test_what_is_no_cgroup_is_named, stage_down);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/event/event-parse.h"

#include <sys/stat.h>

#include "machine.h"
#include "perf/event/pfm-event.h"
#include "perf/event/test-fake-sysfs.h"

static bool libpfm_is_loaded(void) {
        g_autofree char *maps = NULL;

        g_assert_true(g_file_get_contents("/proc/self/maps", &maps, NULL, NULL));
        return strstr(maps, "/libpfm.so");
}

static void test_names_of_perf_have_the_kernels_numbers(void) {
        static const struct {
                const char *name;
                uint32_t type;
                uint64_t config;
        } events[] = {
                { "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
                { "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
                { "Cache-Misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
                { "branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
                { "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
                { "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
                { "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
                { "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
                { "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
                { "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
                { "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
                { "dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY },
                { "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000 },
                { "LLC-stores", PERF_TYPE_HW_CACHE, 0x102 },
                { "iTLB-load-misses", PERF_TYPE_HW_CACHE, 0x10004 },
                { "node-prefetches", PERF_TYPE_HW_CACHE, 0x206 },
                { "perf::PERF_COUNT_SW_PAGE_FAULTS_MAJ", PERF_TYPE_SOFTWARE,
                  PERF_COUNT_SW_PAGE_FAULTS_MAJ },
                { "r01c0", PERF_TYPE_RAW, 0x1c0 },
        };
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                _cleanup_(event_done) Event e = parse(&m, events[i].name);

                g_assert_cmpuint(e.attr.type, ==, events[i].type);
                g_assert_cmphex(e.attr.config, ==, events[i].config);
                g_assert_cmpstr(e.pmu->name, ==,
                                e.attr.type == PERF_TYPE_SOFTWARE ? "software" : "cpu");
        }
        fake_sysfs_done(&m);
}

static int compare_with_libpfm(void *userdata, const char *name, const char *pmu,
                               const char *description) {
        FakeSysfs *m = userdata;
        g_autofree char *theirs = g_strconcat("perf::", name, NULL);
        _cleanup_(event_done) Event our = parse(m, name), their = EVENT_NULL;

        if (!strpbrk(name, ":/") && event_parse(&m->pmus, theirs, &their, NULL) == 0)
                g_assert_cmpmem(&our.attr, sizeof(our.attr), &their.attr, sizeof(their.attr));
        return 0;
}

static void test_names_that_libpfm_has_too_mean_the_same(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));

        g_assert_cmpint(event_list(&m.pmus, "*", compare_with_libpfm, &m), ==, 0);
        fake_sysfs_done(&m);
}

static void test_libpfm_is_loaded_for_its_own_names_only(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));
        static const char *const without[] = { "cycles:u", "page-faults", "mem:0x1000/8:w",
                                               "cpu/event=1/", "LLC-loads:uk" };
        Event e;

        for (size_t i = 0; i < G_N_ELEMENTS(without); i++) {
                e = parse(&m, without[i]);
                event_done(&e);
                g_assert_false(libpfm_is_loaded());
        }
        e = parse(&m, "perf::PERF_COUNT_SW_CPU_CLOCK");
        event_done(&e);
        g_assert_true(libpfm_is_loaded());
        fake_sysfs_done(&m);
}

static void write_tracepoint(const char *tree, const char *path, const char *text) {
        g_autofree char *file = g_build_filename(tree, "kernel/tracing/events", path, NULL);
        g_autofree char *directory = g_path_get_dirname(file);

        g_assert_cmpint(g_mkdir_with_parents(directory, 0700), ==, 0);
        g_assert_true(g_file_set_contents(file, text, -1, NULL));
}

static void test_tracepoints_have_the_numbers_of_tracefs(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));
        Event e;

        write_tracepoint(m.tree, "sched/sched_switch/id", "314\n");
        e = parse(&m, "sched:sched_switch");
        g_assert_cmpuint(e.attr.type, ==, PERF_TYPE_TRACEPOINT);
        g_assert_cmpuint(e.attr.config, ==, 314);
        g_assert_cmpstr(e.pmu->name, ==, "tracepoint");
        event_done(&e);
        e = parse(&m, "sched:sched_switch:k");
        g_assert_true(e.attr.exclude_user);
        event_done(&e);
        assert_refused(&m, "sched:sched_switch:x", REFUSAL_INVALID_EVENT, "modifier 'x'");
        assert_refused(&m, "sched:..", REFUSAL_NO_SUCH_EVENT, "sched");
        assert_refused(&m, "sched:sched_swish", REFUSAL_NO_SUCH_EVENT, "sched_swish");
        fake_sysfs_done(&m);
}

/* As on most machines, for whoever is not root. */
static void test_what_tracefs_hides_is_said(void) {
        FakeSysfs m;
        g_autofree char *events = NULL;

        if (geteuid() == 0 && setresuid((uid_t) -1, 65534, 0) < 0) {
                g_test_skip("needs another user than root");
                return;
        }
        m = fake_sysfs_of(fixture_tree("amd-uncore"));
        events = g_build_filename(m.tree, "kernel/tracing/events", NULL);
        write_tracepoint(m.tree, "sched/sched_switch/id", "314\n");
        g_assert_cmpint(chmod(events, 0), ==, 0);
        assert_refused(&m, "sched:sched_switch", REFUSAL_NO_SUCH_EVENT,
                       "may not read|events/sched/sched_switch/id|tracepoint/config=NUMBER/");
        g_assert_cmpint(chmod(events, 0700), ==, 0);
        fake_sysfs_done(&m);
        if (getuid() == 0)
                g_assert_cmpint(setresuid((uid_t) -1, 0, 0), ==, 0);
}

/* libpfm4 4.12 excludes the hypervisor with :u, and 4.13 does not. */
static void test_privileges_are_the_same_with_every_libpfm(void) {
        static const struct {
                const char *event;
                bool user, kernel, hv; /* excluded by libpfm4: user, kernel; here: hv */
        } events[] = {
                { "perf::PAGE-FAULTS:u", false, true, true },
                { "perf::PAGE-FAULTS:k=1", true, false, true },
                { "perf::PAGE-FAULTS:u:h", false, true, false },
                { "perf::PAGE-FAULTS:u:h=1", false, true, false },
                { "perf::PAGE-FAULTS:u:h=0", false, true, true },
                { "perf::PAGE-FAULTS", false, false, false },
                { "skl::CPU_CLK_UNHALTED:THREAD:u", false, true, true },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                struct perf_event_attr attr = { .exclude_user = events[i].user,
                                                .exclude_kernel = events[i].kernel };

                pfm_event_settle(events[i].event, &attr);
                g_assert_cmpint(attr.exclude_hv, ==, events[i].hv);
        }
}

static void test_modifiers_say_where_to_count(void) {
        enum {
                USER = 1,
                KERNEL = 2,
                HV = 4,
                GUEST = 8,
                HOST = 16,
                IDLE = 32,
        };
        static const struct {
                const char *event;
                unsigned excluded, precise;
        } events[] = {
                { "cycles", 0, 0 },
                { "cycles:u", KERNEL | HV, 0 },
                { "cycles:k", USER | HV, 0 },
                { "cycles:h", USER | KERNEL, 0 },
                { "cycles:uk", HV, 0 },
                { "cycles:u:k", HV, 0 },
                { "cycles:ukh", 0, 0 },
                { "cycles:G", HOST, 0 },
                { "cycles:uH", KERNEL | HV | GUEST, 0 },
                { "cycles:GH", 0, 0 },
                { "cycles:I", IDLE, 0 },
                { "cycles:upp", KERNEL | HV | GUEST, 2 },
                { "cycles:pppH", GUEST, 3 },
                { "cpu/event=0x76/", 0, 0 },
                { "cpu/event=0x76/u", KERNEL | HV, 0 },
                { "cpu/event=0x76/:uk", HV, 0 },
                { "perf::CYCLES", 0, 0 },
                { "perf::CYCLES:u", KERNEL | HV, 0 },
                { "perf::CYCLES:uk", HV, 0 },
                { "perf::CYCLES:k=1", USER | HV, 0 },
                { "perf::CYCLES:mh", GUEST, 0 },
                { "perf::CYCLES:precise=1", 0, 1 },
                { "r76:u", KERNEL | HV, 0 },
        };
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                _cleanup_(event_done) Event e = parse(&m, events[i].event);
                unsigned excluded =
                        (e.attr.exclude_user ? USER : 0) | (e.attr.exclude_kernel ? KERNEL : 0) |
                        (e.attr.exclude_hv ? HV : 0) | (e.attr.exclude_guest ? GUEST : 0) |
                        (e.attr.exclude_host ? HOST : 0) | (e.attr.exclude_idle ? IDLE : 0);

                g_test_message("%s", e.name);
                g_assert_cmphex(excluded, ==, events[i].excluded);
                g_assert_cmpuint(e.attr.precise_ip, ==, events[i].precise);
        }
        fake_sysfs_done(&m);
}

static void test_software_events_open_on_this_kernel(void) {
        static const char *const events[] = {
                "cpu-clock",
                "task-clock:u",
                "page-faults",
                "faults:k",
                "context-switches",
                "cs:uk",
                "migrations",
                "minor-faults",
                "major-faults",
                "alignment-faults",
                "dummy",
                "emulation-faults:u",
                "dummy:ppp",
                "software/config=2/u",
                "perf::PERF_COUNT_SW_CPU_CLOCK:u",
                "perf::page-faults",
        };
        FakeSysfs m;

        if (machine_lacks(MACHINE_SYSFS | MACHINE_EVENTS))
                return;
        m = fake_sysfs_of(NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                _cleanup_(event_done) Event e = parse(&m, events[i]);
                _cleanup_close_ int fd = open_event(&e, false, -1);

                g_assert_cmpstr(e.pmu->name, ==, "software");
                if (fd < 0)
                        g_test_skip("CPU-wide events are not for this user");
        }
        fake_sysfs_done(&m);
}

static void test_names_without_a_core_pmu_say_so(void) {
        static const char *const events[] = { "cycles", "cache-misses:u", "LLC-loads", "r003c",
                                              "perf::PERF_COUNT_HW_INSTRUCTIONS" };
        FakeSysfs m = fake_sysfs_of(fixture_empty());

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
                assert_refused(&m, events[i], REFUSAL_NO_SUCH_EVENT, "no core PMU|task-clock");
        fake_sysfs_done(&m);
}

static void test_names_of_another_cpu_say_so(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));
        Refusal why;
        Event e;
        unsigned others = 0;

        /* this machine's CPU may be one of them, not both */
        if (event_parse(&m.pmus, "skl::UOPS_RETIRED:ALL", &e, &why) == 0)
                event_done(&e);
        else
                others += strstr(why.text, "this machine's CPU is") != NULL;
        if (event_parse(&m.pmus, "amd64_k8_revb::DATA_CACHE_ACCESSES", &e, &why) == 0)
                event_done(&e);
        else
                others += strstr(why.text, "this machine's CPU is") != NULL;
#if defined(__x86_64__)
        g_assert_cmpuint(others, >=, 1);
#else
        g_assert_cmpuint(others, ==, 0); /* libpfm4 has none there */
#endif
        fake_sysfs_done(&m);
}

static void test_names_that_are_not_known_say_what_is_near(void) {
        static const struct {
                const char *event, *words;
        } events[] = {
                { "cyclse", "'cyclse'|did you mean cycles?" },
                { "page-fualts:u", "'page-fualts'|page-faults" },
                { "task_clock", "task-clock" },
                { "perf::CYCLSE", "'CYCLSE'|CYCLES" },
                { "perf::CYCLES:presice=1", "'presice'|precise" },
                { "prf::CYCLES", "no PMU 'prf'|perf" },
                { "::cycles", "no PMU ''" },
                { "qqqqqqqqqqqqqqqqqqqq", "'qqqqqqqqqqqqqqqqqqqq'" },
        };
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
                assert_refused(&m, events[i].event, REFUSAL_NO_SUCH_EVENT, events[i].words);
        fake_sysfs_done(&m);
}

static void test_what_is_no_part_of_an_event_is_refused(void) {
        static const char *const events[] = {
                "perf::CYCLES:period=1000", "perf::CYCLES:freq=10", "perf::CYCLES:pinned",
                "perf::CYCLES:excl",        "perf::CYCLES:cpu=0",   "perf::CYCLES:u:pinned=1",
        };
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
                assert_refused(&m, events[i], REFUSAL_INVALID_EVENT, "cannot be part of an event");
        assert_refused(&m, "dummy:pinned", REFUSAL_INVALID_EVENT, "'dummy'|modifiers");
        fake_sysfs_done(&m);
}

static void test_strings_that_are_no_names_are_refused(void) {
        g_autofree char *longest = g_strnfill(EVENT_NAME_MAX, 'a');
        g_autofree char *longer = g_strnfill(EVENT_NAME_MAX + 1, 'a');
        g_autofree char *colons = g_strnfill(EVENT_NAME_MAX, ':');
        g_autofree char *term = g_strdup_printf("cpu/%.*s/", (int) EVENT_NAME_MAX - 5, longest);
        g_autofree char *commas = g_strdup_printf("cpu/%0*d/", 100, 0);
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));

        assert_refused(&m, "", REFUSAL_INVALID_EVENT, "without a name");
        assert_refused(&m, longer, REFUSAL_INVALID_EVENT, "longer than 512");
        assert_refused(&m, "page faults", REFUSAL_INVALID_EVENT, "blanks");
        assert_refused(&m, "page-faults\n", REFUSAL_INVALID_EVENT, "'page-faults'");
        assert_refused(&m, "page-f\xc3\xa4ults", REFUSAL_INVALID_EVENT, "'page-f'");
        assert_refused(&m, longest, REFUSAL_NO_SUCH_EVENT, "this CPU, ");
        assert_refused(&m, term, REFUSAL_NO_SUCH_EVENT, "no event or term");
        assert_refused(&m, colons, REFUSAL_NO_SUCH_EVENT, "no PMU");
        memset(commas + 4, ',', strlen(commas) - 5);
        assert_refused(&m, commas, REFUSAL_INVALID_EVENT, "more than 64 terms");
        fake_sysfs_done(&m);
}

/* What an event may set; all else must be 0. */
static void assert_clean(const Event *e) {
        struct perf_event_attr allowed = {
                .size = sizeof(allowed),
                .type = e->attr.type,
                .config = e->attr.config,
                .config1 = e->attr.config1,
                .config2 = e->attr.config2,
                .bp_type = e->attr.bp_type,
                .exclude_user = e->attr.exclude_user,
                .exclude_kernel = e->attr.exclude_kernel,
                .exclude_hv = e->attr.exclude_hv,
                .exclude_idle = e->attr.exclude_idle,
                .exclude_host = e->attr.exclude_host,
                .exclude_guest = e->attr.exclude_guest,
                .precise_ip = e->attr.precise_ip,
        };

        g_assert_cmpmem(&e->attr, sizeof(e->attr), &allowed, sizeof(allowed));
}

/* Inserts letters and pieces of events, and removes some. */
static void garble(GString *string) {
        static const char *const pieces[] = { ":",      "::",  "/",       ",",    "=",
                                              "0x",     "u",   "mem:",    "cpu/", "perf::",
                                              "event=", "ppp", "config2=" };
        gint n = g_test_rand_int_range(1, 5);

        for (gint i = 0; i < n; i++) {
                gint at = g_test_rand_int_range(0, (gint) string->len + 1);

                if (g_test_rand_bit() && string->len > 0)
                        g_string_erase(string, MIN(at, (gint) string->len - 1), 1);
                else if (g_test_rand_bit())
                        g_string_insert(string, at,
                                        pieces[g_test_rand_int_range(0, G_N_ELEMENTS(pieces))]);
                else
                        g_string_insert_c(string, at, (gchar) g_test_rand_int_range(1, 127));
        }
}

static void test_any_string_is_an_event_or_a_refusal_with_words(void) {
        static const char *const seeds[] = {
                "cycles:u",
                "page-faults:ukhp",
                "mem:0x7fff0000/8:rw:u",
                "msr/tsc/",
                "cpu/event=0x3c,umask=0x1,edge/upp",
                "perf::PERF_COUNT_SW_CPU_CLOCK:u=1:k=0",
                "L1-dcache-load-misses:u",
                "amd_iommu_0/mem_pass_pretrans,devid=8/",
                "skl::UOPS_RETIRED:ALL:c=1:i",
                "r003c:u",
                "RETIRED_INSTRUCTIONS:c=1:mg",
        };
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));
        unsigned before = count_descriptors(), events = 0;

        for (int i = 0; i < 20000; i++) {
                g_autoptr(GString) string =
                        g_string_new(seeds[g_test_rand_int_range(0, G_N_ELEMENTS(seeds))]);
                _cleanup_(event_done) Event e = EVENT_NULL;
                Refusal why = REFUSAL_NULL;
                int r;

                garble(string);
                r = event_parse(&m.pmus, string->str, &e, &why);
                if (r == 0) {
                        assert_clean(&e);
                        g_assert_nonnull(e.pmu);
                        events++;
                } else {
                        g_assert_cmpint(r, >, 0);
                        g_assert_cmpint(why.code, ==, r);
                        g_assert_cmpstr(why.text, !=, "");
                }
        }
        g_assert_cmpuint(events, >, 100);
        g_assert_cmpuint(count_descriptors(), ==, before);
        fake_sysfs_done(&m);
}

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        /* the first one, for libpfm4 stays loaded */
        g_test_add_func("/event/libpfm-is-loaded-for-its-own-names-only",
                        test_libpfm_is_loaded_for_its_own_names_only);
        g_test_add_func("/event/tracepoints-have-the-numbers-of-tracefs",
                        test_tracepoints_have_the_numbers_of_tracefs);
        g_test_add_func("/event/what-tracefs-hides-is-said", test_what_tracefs_hides_is_said);
        g_test_add_func("/event/privileges-are-the-same-with-every-libpfm",
                        test_privileges_are_the_same_with_every_libpfm);
        g_test_add_func("/event/names-of-perf-have-the-kernels-numbers",
                        test_names_of_perf_have_the_kernels_numbers);
        g_test_add_func("/event/names-that-libpfm-has-too-mean-the-same",
                        test_names_that_libpfm_has_too_mean_the_same);
        g_test_add_func("/event/modifiers-say-where-to-count", test_modifiers_say_where_to_count);
        g_test_add_func("/machine/event/software-events-open",
                        test_software_events_open_on_this_kernel);
        g_test_add_func("/event/names-without-a-core-pmu-say-so",
                        test_names_without_a_core_pmu_say_so);
        g_test_add_func("/event/names-of-another-cpu-say-so", test_names_of_another_cpu_say_so);
        g_test_add_func("/event/names-that-are-not-known-say-what-is-near",
                        test_names_that_are_not_known_say_what_is_near);
        g_test_add_func("/event/what-is-no-part-of-an-event-is-refused",
                        test_what_is_no_part_of_an_event_is_refused);
        g_test_add_func("/event/strings-that-are-no-names-are-refused",
                        test_strings_that_are_no_names_are_refused);
        g_test_add_func("/event/any-string-is-an-event-or-a-refusal-with-words",
                        test_any_string_is_an_event_or_a_refusal_with_words);
        return g_test_run();
}

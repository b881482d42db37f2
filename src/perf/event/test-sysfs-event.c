/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/event/sysfs-event.h"

#include "machine.h"
#include "perf/event/test-fake-sysfs.h"

static void test_terms_go_where_sysfs_says(void) {
        static const struct {
                const char *tree, *event;
                uint32_t type;
                uint64_t config, config1;
        } events[] = {
                { "amd-uncore", "cpu/event=0x3c,umask=0/", 4, 0x3c, 0 },
                { "amd-uncore", "cpu/event=60,umask=010/", 4, 0xa3c, 0 },
                { "amd-uncore", "cpu/event=0x1c0/", 4, 0x1000000c0, 0 },
                { "amd-uncore", "cpu/event=0xfff,umask=0xff/", 4, 0xf0000ffff, 0 },
                { "amd-uncore", "cpu/edge,inv/", 4, 0x840000, 0 },
                { "amd-uncore", "cpu//", 4, 0, 0 },
                { "amd-uncore", "cpu/config=0xffffffffffffffff,config1=7/", 4, UINT64_MAX, 7 },
                { "amd-uncore", "cpu/config=0xffff,event=0x11/", 4, 0xff11, 0 },
                { "amd-uncore", "cpu/event=1,event=2/", 4, 2, 0 },
                { "amd-uncore", "amd_df/event=0x3fff,umask=0xfff/", 12, 0x3f0f00ffff, 0 },
                { "amd-uncore", "amd_l3/threadmask=0xff/", 13, 0xff00000000000000, 0 },
                { "amd-uncore", "amd_iommu_0/mem_pass_pretrans,devid=0x8,devid_mask=0xffff/", 14,
                  0x805, 0xffff },
                { "amd-uncore", "msr/event=0xffffffffffffffff/", 11, UINT64_MAX, 0 },
                { "amd-uncore", "tracepoint/config=314/", 2, 314, 0 },
                { "intel-hybrid", "cpu_atom/cpu-cycles/u", 10, 0x3c, 0 },
                { "intel-hybrid", "cpu_core/mem-loads/", 4, 0x1cd, 3 },
                { "intel-hybrid", "cpu_core/mem-loads=1/", 4, 0x1cd, 3 },
                { "intel-hybrid", "cpu_core/mem-loads,ldlat=50/", 4, 0x1cd, 50 },
                { "intel-hybrid", "cpu_core/ldlat=50,umask=2,mem-loads/", 4, 0x2cd, 50 },
                { "intel-hybrid", "intel_pt/tsc,psb_period=3/", 9, 0x3000400, 0 },
                { "arm-big-little", "armv8_cortex_a53/long=1/", 9, 0, 1 },
                { "arm-big-little", "armv8_cortex_a72/inst_retired,long/", 10, 8, 1 },
                { "arm-big-little", "arm_smmuv3_pmcg_2b442/event=1,filter_enable/", 12, 1,
                  UINT64_C(1) << 33 },
                { "server-256", "uncore_cha_7/event=0x50,umask=0x3ffff01/", 27,
                  UINT64_C(0x3ffff00000150), 0 },
                { "server-256", "hv_24x7/CORE_CYCLES,core=0x12/", 202, 0x9800120002, 0 },
        };
        FakeSysfs m = {};

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                _cleanup_(event_done) Event e = EVENT_NULL;

                fake_sysfs_change(&m, events[i].tree);
                e = parse(&m, events[i].event);
                g_test_message("%s", e.name);
                g_assert_cmpuint(e.attr.type, ==, events[i].type);
                g_assert_cmphex(e.attr.config, ==, events[i].config);
                g_assert_cmphex(e.attr.config1, ==, events[i].config1);
                g_assert_cmpuint(e.pmu->type, ==, events[i].type);
        }
        fake_sysfs_done(&m);
}

static void test_scale_and_unit_come_with_the_name_of_an_event(void) {
        static const struct {
                const char *event;
                double scale;
                const char *unit;
        } events[] = {
                { "power/energy-pkg/", 2.3283064365386962890625e-10, "Joules" },
                { "uncore_imc_0/cas_count_read/", 6.103515625e-5, "MiB" },
                { "uncore_imc_0/cas_count_read,umask=1/", 6.103515625e-5, "MiB" },
                { "uncore_imc_0/event=5,umask=0xcf/", 1, "" },
                { "uncore_imc_0/clockticks/", 1, "" },
                { "page-faults", 1, "" },
        };
        FakeSysfs m = fake_sysfs_of(fixture_tree("server-256"));

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                _cleanup_(event_done) Event e = parse(&m, events[i].event);

                g_assert_cmpfloat(e.scale, ==, events[i].scale);
                g_assert_cmpstr(e.unit, ==, events[i].unit);
        }
        fake_sysfs_done(&m);
}

static void test_wrong_terms_are_refused_by_name(void) {
        static const struct {
                const char *event;
                int code;
                const char *words;
        } events[] = {
                { "cpu_core/umask=0x100/", REFUSAL_INVALID_EVENT, "'0x100'|'umask'|8 bits" },
                { "cpu_core/edge=2/", REFUSAL_INVALID_EVENT, "'edge'|1 bits" },
                { "cpu_core/config=0x10000000000000000/", REFUSAL_INVALID_EVENT, "64 bits" },
                { "cpu_core/umask=/", REFUSAL_INVALID_EVENT, "'' of term 'umask'" },
                { "cpu_core/umask=-1/", REFUSAL_INVALID_EVENT, "'-1'|'umask'" },
                { "cpu_core/umask=one/", REFUSAL_INVALID_EVENT, "'one'|'umask'" },
                { "cpu_core/unmask=1/", REFUSAL_NO_SUCH_EVENT,
                  "'cpu_core'|'unmask'|did you mean umask" },
                { "cpu_core/instruction/", REFUSAL_NO_SUCH_EVENT, "'instruction'|instructions" },
                { "cpu_core/event=1,period=0/", REFUSAL_INVALID_EVENT, "'period'|above 0" },
                { "cpu_core/event=1,period=x/", REFUSAL_INVALID_EVENT, "'period'" },
                { "cpu_core/event=1,percore=2/", REFUSAL_INVALID_EVENT,
                  "'2' of term 'percore'|expected 0 or 1" },
                { "cpu_core/event=1,percore=/", REFUSAL_INVALID_EVENT, "expected 0 or 1" },
                { "cpu_core/event=1,percore=yes/", REFUSAL_INVALID_EVENT, "expected 0 or 1" },
                { "cpu_core/event=1,name/", REFUSAL_INVALID_EVENT, "'name'" },
                { "cpu_core/event=1,name=/", REFUSAL_INVALID_EVENT, "'name'" },
                { "cpu_core/instructions=2/", REFUSAL_INVALID_EVENT, "'instructions' is an event" },
                { "cpu_core/instructions,slots/", REFUSAL_INVALID_EVENT,
                  "'instructions' and 'slots'" },
                { "cpu_core/event=1,/x", REFUSAL_INVALID_EVENT, "invalid modifier 'x'" },
                { "cpu_core/event=1,,umask=1/", REFUSAL_NO_SUCH_EVENT, "term ''" },
                { "cpu_core/event=1", REFUSAL_INVALID_EVENT, "pmu/term" },
                { "cpu_core/event=1/pppp", REFUSAL_INVALID_EVENT, "'pppp'" },
                { "cpu/event=1/", REFUSAL_NO_SUCH_EVENT, "no PMU 'cpu'|cpu_core|cpu_atom" },
                { "/event=1/", REFUSAL_NO_SUCH_EVENT, "no PMU ''" },
                { "power/energy-pkg.scale/", REFUSAL_NO_SUCH_EVENT, "'energy-pkg.scale'" },
                { "kprobe/config1=0x1000/", REFUSAL_INVALID_EVENT,
                  "memory of the process that opens it" },
                { "uprobe/config1=0x1000/", REFUSAL_INVALID_EVENT,
                  "memory of the process that opens it" },
        };
        FakeSysfs m = fake_sysfs_of(fixture_tree("intel-hybrid"));

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
                assert_refused(&m, events[i].event, events[i].code, events[i].words);
        fake_sysfs_done(&m);
}

/* They say nothing to the PMU. */
static void test_terms_of_perf_itself_are_taken(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("intel-hybrid"));
        _cleanup_(event_done) Event e =
                parse(&m, "cpu_core/event=0x3c,name=my.name,period=1000,percore,umask=1/u");
        _cleanup_(event_done) Event copy = EVENT_NULL;

        g_assert_cmphex(e.attr.config, ==, 0x13c);
        g_assert_cmpuint(e.attr.sample_period, ==, 0);
        g_assert_cmpstr(e.label, ==, "my.name");
        g_assert_cmpint(event_copy(&copy, &e), ==, 0);
        g_assert_cmpstr(copy.label, ==, "my.name");
        fake_sysfs_done(&m);
}

static void test_percore_may_have_a_value(void) {
        static const char *const events[] = { "cpu_core/event=0x3c,percore/",
                                              "cpu_core/event=0x3c,percore=1/",
                                              "cpu_core/event=0x3c,percore=0/",
                                              "cpu_core/percore=0x1,event=0x3c/" };
        FakeSysfs m = fake_sysfs_of(fixture_tree("intel-hybrid"));

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                _cleanup_(event_done) Event e = parse(&m, events[i]);

                g_assert_cmphex(e.attr.config, ==, 0x3c);
        }
        fake_sysfs_done(&m);
}

/* Whatever the header of this build has. */
static void test_later_words_of_the_attr_are_known(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));
        Event e;

        fixture_write(m.tree, "cpu/format/third", "config3:4-11");
        fixture_write(m.tree, "cpu/format/fourth", "config4:0-63");
        e = parse(&m, "cpu/event=0x76,third=0x12/");
        g_assert_cmphex(attr_number(&e.full, ATTR_CONFIG3), ==, 0x120);
        g_assert_cmpuint(e.attr.size, ==, MAX(136, sizeof(e.attr)));
        event_done(&e);
        e = parse(&m, "cpu/fourth=7,config3=0xffffffffffffffff/");
        g_assert_cmphex(attr_number(&e.full, ATTR_CONFIG3), ==, UINT64_MAX);
        g_assert_cmphex(attr_number(&e.full, ATTR_CONFIG4), ==, 7);
        g_assert_cmpuint(e.attr.size, ==, MAX(144, sizeof(e.attr)));
        event_done(&e);
        e = parse(&m, "cpu/event=0x76/");
        g_assert_cmpuint(e.attr.size, ==, sizeof(e.attr));
        event_done(&e);
        fake_sysfs_done(&m);
}

static void test_parameters_that_are_missing_are_asked_for(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("server-256"));

        assert_refused(&m, "hv_24x7/CORE_CYCLES/", REFUSAL_INVALID_EVENT,
                       "needs a value for 'core'|CORE_CYCLES,core=NUMBER");
        assert_refused(&m, "hv_24x7/CORE_CYCLES,core/", REFUSAL_INVALID_EVENT, "'core'");
        fake_sysfs_done(&m);
}

static void test_names_do_not_lead_out_of_the_directory(void) {
        static const char *const events[] = {
                "cpu/../secret/", "cpu/../../cpu/type/", "cpu/./",         "cpu/../",
                "cpu/.hidden/",   "../cpu/event=1/",     "./cpu/event=1/", "cpu/../type=1/",
        };
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));

        fixture_write(m.tree, "cpu/secret", "event=0x1");
        fixture_write(m.tree, "cpu/events/.hidden", "event=0x1");
        for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
                assert_refused(&m, events[i], REFUSAL_NO_SUCH_EVENT, "no ");
        fake_sysfs_done(&m);
}

static void test_odd_files_refuse_the_event_that_needs_them(void) {
        static const struct {
                const char *event;
                int code;
        } events[] = {
                { "cpu/events-are-terms/", REFUSAL_INVALID_EVENT },
                { "cpu/itself/", REFUSAL_INVALID_EVENT },
                { "cpu/too-wide/", REFUSAL_INVALID_EVENT },
                { "cpu/too-long/", REFUSAL_INVALID_EVENT },
                { "cpu/huge/", REFUSAL_NO_SUCH_EVENT },
                { "cpu/directory/", REFUSAL_NO_SUCH_EVENT },
                { "cpu/no-word=1/", REFUSAL_INVALID_EVENT },
                { "cpu/no-bits=1/", REFUSAL_INVALID_EVENT },
                { "cpu/backwards=1/", REFUSAL_INVALID_EVENT },
                { "cpu/far=1/", REFUSAL_INVALID_EVENT },
                { "cpu/twice=1/", REFUSAL_INVALID_EVENT },
                { "cpu/open=1/", REFUSAL_INVALID_EVENT },
                { "cpu/blank=1/", REFUSAL_INVALID_EVENT },
                { "cpu/long=1/", REFUSAL_INVALID_EVENT },
        };
        FakeSysfs m = fake_sysfs_of(fixture_tree("amd-uncore"));
        g_autofree char *huge = g_strnfill(1 << 20, 'a');
        g_autofree char *terms = g_strnfill(5000, ',');
        unsigned before = count_descriptors();

        fixture_write(m.tree, "cpu/events/events-are-terms", "instructions");
        fixture_write(m.tree, "cpu/events/itself", "itself");
        fixture_write(m.tree, "cpu/events/too-wide", "umask=0xfff");
        fixture_write(m.tree, "cpu/events/too-long", terms);
        fixture_write(m.tree, "cpu/events/huge", huge);
        fixture_write(m.tree, "cpu/events/directory/file", "");
        fixture_write(m.tree, "cpu/format/no-word", "word:0-7");
        fixture_write(m.tree, "cpu/format/no-bits", "config");
        fixture_write(m.tree, "cpu/format/backwards", "config:7-0");
        fixture_write(m.tree, "cpu/format/far", "config:60-64");
        fixture_write(m.tree, "cpu/format/twice", "config:0-7,7");
        fixture_write(m.tree, "cpu/format/open", "config:0-7,");
        fixture_write(m.tree, "cpu/format/blank", "");
        fixture_write(m.tree, "cpu/format/long", terms);
        for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
                assert_refused(&m, events[i].event, events[i].code, "'cpu/");
        g_assert_cmpuint(count_descriptors(), ==, before);
        fake_sysfs_done(&m);
}

static void test_odd_scales_are_1(void) {
        static const char *const scales[] = { "", "much", "0", "nan", "inf", "1.5x", "1e999" };
        FakeSysfs m = fake_sysfs_of(fixture_tree("server-256"));

        for (size_t i = 0; i < G_N_ELEMENTS(scales); i++) {
                Event e;

                fixture_write(m.tree, "power/events/energy-pkg.scale", scales[i]);
                fixture_write(m.tree, "power/events/energy-pkg.unit", "J\x01\xff");
                e = parse(&m, "power/energy-pkg/");
                g_assert_cmpfloat(e.scale, ==, 1);
                g_assert_cmpstr(e.unit, ==, "J??");
                event_done(&e);
        }
        fake_sysfs_done(&m);
}

static void test_msr_counts(void) {
        FakeSysfs m;

        if (machine_lacks(MACHINE_SYSFS | MACHINE_EVENTS))
                return;
        m = fake_sysfs_of(NULL);
        if (!pmu_table_find(&m.pmus, "msr"))
                g_test_skip("no PMU msr here");
        else {
                _cleanup_(event_done) Event e = parse(&m, "msr/tsc/");
                _cleanup_close_ int fd = open_event(&e, true, -1);
                uint64_t first = 0, second = 0;

                if (fd < 0)
                        g_test_skip("CPU-wide events are not for this user");
                else {
                        g_assert_cmpint(read(fd, &first, sizeof(first)), ==, sizeof(first));
                        g_assert_cmpint(read(fd, &second, sizeof(second)), ==, sizeof(second));
                        g_assert_cmpuint(second, >, first);
                }
        }
        fake_sysfs_done(&m);
}

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/sysfs-event/terms-go-where-sysfs-says", test_terms_go_where_sysfs_says);
        g_test_add_func("/sysfs-event/scale-and-unit-come-with-the-name-of-an-event",
                        test_scale_and_unit_come_with_the_name_of_an_event);
        g_test_add_func("/sysfs-event/wrong-terms-are-refused-by-name",
                        test_wrong_terms_are_refused_by_name);
        g_test_add_func("/sysfs-event/terms-of-perf-itself-are-taken",
                        test_terms_of_perf_itself_are_taken);
        g_test_add_func("/sysfs-event/percore-may-have-a-value", test_percore_may_have_a_value);
        g_test_add_func("/sysfs-event/later-words-of-the-attr-are-known",
                        test_later_words_of_the_attr_are_known);
        g_test_add_func("/sysfs-event/parameters-that-are-missing-are-asked-for",
                        test_parameters_that_are_missing_are_asked_for);
        g_test_add_func("/sysfs-event/names-do-not-lead-out-of-the-directory",
                        test_names_do_not_lead_out_of_the_directory);
        g_test_add_func("/sysfs-event/odd-files-refuse-the-event-that-needs-them",
                        test_odd_files_refuse_the_event_that_needs_them);
        g_test_add_func("/sysfs-event/odd-scales-are-1", test_odd_scales_are_1);
        g_test_add_func("/machine/sysfs-event/msr-counts", test_msr_counts);
        return g_test_run();
}

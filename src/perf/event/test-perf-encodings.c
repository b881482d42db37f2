/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The encodings of event strings beside those of perf itself, which takes its /sys from the
 * environment. perf shows each attr before the kernel refuses it.
 */

#include "perf/event/event-parse.h"

#include <inttypes.h>
#include <stdio.h>

#include "perf/event/test-fake-sysfs.h"

#include "machine.h"

#define OPENING "Control descriptor is not initialized\n"

typedef struct Numbers {
        uint64_t type, config, config1, config2;
} Numbers;

/*
 * Whether perf takes generic names on a hybrid CPU without a look at this machine. perf 7 asks its
 * kernel, and prefers events of sysfs that have the name.
 */
static bool perf_names_pmus;

static char *perf_says(const char *tree, const char *event) {
        const char *argv[] = { "perf", "stat", "-vv", "-e", event, "--", "true", NULL };
        g_auto(GStrv) environment = g_environ_setenv(g_get_environ(), "SYSFS_PATH", tree, TRUE);
        g_autofree char *text = NULL, *begin = NULL;

        g_assert_true(g_spawn_sync(NULL, (char **) argv, environment,
                                   G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL,
                                   NULL, &text, NULL, NULL));
        begin = strstr(text, OPENING) ? g_strdup(strstr(text, OPENING)) : NULL;
        if (!begin)
                g_error("perf has no encoding for '%s': %s", event, text);
        return g_steal_pointer(&begin);
}

/* 0 if the line is about another field. */
static uint64_t number_of(const char *line, const char *field) {
        g_autofree char *start = g_strdup_printf("  %s ", field);

        return g_str_has_prefix(line, start) ? g_ascii_strtoull(line + strlen(start), NULL, 0) : 0;
}

static void numbers_read(Numbers *n, const char *line) {
        n->type |= number_of(line, "type");
        n->config |= number_of(line, "config");
        n->config1 |= number_of(line, "{ bp_addr, config1 }");
        n->config2 |= number_of(line, "{ bp_len, config2 }");
}

static bool numbers_are(const Numbers *n, const struct perf_event_attr *attr) {
        return n->type == attr->type && n->config == attr->config && n->config1 == attr->config1 &&
               n->config2 == attr->config2;
}

/*
 * Between two lines of dashes each. perf 7 tries others in the middle of one, to find the name of
 * its event.
 */
static GArray *attrs_of(char *const *lines) {
        GArray *all = g_array_new(FALSE, FALSE, sizeof(Numbers));
        Numbers open[8] = {};
        size_t depth = 0;

        for (; *lines; lines++) {
                bool dashes = g_str_has_prefix(*lines, "---");

                if (dashes && lines[1] && strcmp(lines[1], "perf_event_attr:") == 0) {
                        g_assert_cmpuint(depth, <, G_N_ELEMENTS(open));
                        open[depth++] = (Numbers){};
                } else if (dashes && depth > 0 && --depth == 0) {
                        g_array_append_val(all, open[0]);
                } else if (depth > 0) {
                        numbers_read(&open[depth - 1], *lines);
                }
        }
        return all;
}

/* The attrs that perf opens. */
static GArray *perf_encodes(const char *tree, const char *event) {
        g_autofree char *text = perf_says(tree, event);
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

        return attrs_of(lines);
}

static void perf_try(void) {
        FakeSysfs m = fake_sysfs_of(fixture_tree("intel-hybrid"));
        g_autoptr(GArray) all = perf_encodes(m.tree, "cycles");

        for (guint i = 0; i < all->len; i++)
                perf_names_pmus |= g_array_index(all, Numbers, i).config >> 32 != 0;
        fake_sysfs_done(&m);
}

/* perf 7 opens slots beside topdown events, which count only in a group that it leads. */
static bool is_slots_of(const FakeSysfs *m, const char *event, const Numbers *n) {
        _cleanup_(event_done) Event slots = EVENT_NULL;

        if (!g_str_has_prefix(event, "cpu/topdown-"))
                return false;
        slots = parse(m, "cpu/slots/");
        return numbers_are(n, &slots.attr);
}

/* perf opens on the same PMUs, in an order of its own. */
static void compare(const FakeSysfs *m, const char *event) {
        _cleanup_(event_done) Event e = parse(m, event);
        g_autoptr(GArray) their = perf_encodes(m->tree, event);

        g_test_message("%s: type %u, config 0x%" PRIx64 ", %u PMUs", event, e.attr.type,
                       (uint64_t) e.attr.config, their->len);
        for (size_t unit = 0; unit < event_units(&e); unit++) {
                const Event *on = event_on(&e, unit);
                guint i = 0;

                while (i < their->len && !numbers_are(&g_array_index(their, Numbers, i), &on->attr))
                        i++;
                g_assert_cmpuint(i, <, their->len);
                g_array_remove_index(their, i);
        }
        /* what is left is another CPU's, or another try, of the same */
        for (guint i = 0; i < their->len; i++) {
                bool known = is_slots_of(m, event, &g_array_index(their, Numbers, i));

                for (size_t unit = 0; unit < event_units(&e); unit++)
                        known |= numbers_are(&g_array_index(their, Numbers, i),
                                             &event_on(&e, unit)->attr);
                g_assert_true(known);
        }
}

static int compare_listed(void *userdata, const char *name, const char *pmu,
                          const char *description) {
        const FakeSysfs *m = userdata;
        const char *instance = strrchr(pmu, '_');

        /* one instance of many is enough, and what needs a value has no encoding */
        if (!strchr(description, '?') && !(instance && instance[1] >= '1' && instance[1] <= '9'))
                compare(m, name);
        return 0;
}

/* The names in directory events of each PMU. */
static void test_names_of_sysfs(gconstpointer tree) {
        FakeSysfs m = fake_sysfs_of(fixture_tree(tree));

        g_assert_cmpint(event_list(&m.pmus, "*/*", compare_listed, &m), ==, 0);
        fake_sysfs_done(&m);
}

static int compare_generic(void *userdata, const char *name, const char *pmu,
                           const char *description) {
        const FakeSysfs *m = userdata;
        g_autofree char *file =
                g_build_filename(m->tree, "bus/event_source/devices/cpu/events", name, NULL);

        if (!strpbrk(name, "/:") && (perf_names_pmus || !g_file_test(file, G_FILE_TEST_EXISTS)))
                compare(m, name);
        return 0;
}

static void test_generic_names(gconstpointer tree) {
        FakeSysfs m = fake_sysfs_of(fixture_tree(tree));

        g_assert_cmpint(event_list(&m.pmus, "*", compare_generic, &m), ==, 0);
        fake_sysfs_done(&m);
}

static void test_terms(void) {
        static const struct {
                const char *tree, *event;
        } events[] = {
                { "amd-uncore", "cpu/event=0x3c,umask=1/" },
                { "amd-uncore", "cpu/event=0x1c0,inv/" },
                { "amd-uncore", "cpu/event=1,name=my-name/" },
                { "amd-uncore", "cpu/event=1,period=1000/" },
                { "amd-uncore", "cpu/event=1,percore/" },
                { "amd-uncore", "cpu/config=0x3c,config1=7/" },
                { "amd-uncore", "r1c0" },
                { "intel-hybrid", "cpu_core/event=0xcd,umask=1,ldlat=50/" },
                { "intel-hybrid", "cycles" },
                { "intel-hybrid", "instructions" },
                { "intel-hybrid", "branch-misses" },
                { "intel-hybrid", "r1c0" },
                { "server-256", "uncore_imc/cas_count_read/" },
                { "server-256", "uncore_imc/event=5,umask=0xcf/" },
                { "server-256", "imc/cas_count_read/" },
                { "arm-server", "armv8_pmuv3_0/event=0x11/" },
        };
        FakeSysfs m = {};

        for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
                bool hybrid = strcmp(events[i].tree, "intel-hybrid") == 0;

                if (hybrid && !strchr(events[i].event, '/') && !perf_names_pmus)
                        continue;
                fake_sysfs_change(&m, events[i].tree);
                compare(&m, events[i].event);
        }
        fake_sysfs_done(&m);
}

int main(int argc, char **argv) {
        static const char *const trees[] = { "amd-uncore",    "arm-big-little", "arm-server",
                                             "intel-desktop", "intel-slots",    "riscv",
                                             "server-256" };
        g_autofree char *perf = g_find_program_in_path("perf");

        if (machine_skips_all(MACHINE_PROC | MACHINE_EVENTS))
                return 0;
        g_test_init(&argc, &argv, NULL);
        if (!perf) {
                printf("1..0 # SKIP perf is not installed\n");
                return 0;
        }
        perf_try();
        g_test_add_func("/perf-encodings/terms", test_terms);
        g_test_add_data_func("/perf-encodings/generic-names", "amd-uncore", test_generic_names);
        for (size_t i = 0; i < G_N_ELEMENTS(trees); i++) {
                g_autofree char *path = g_strconcat("/perf-encodings/", trees[i], NULL);

                g_test_add_data_func(path, trees[i], test_names_of_sysfs);
        }
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/pmu/pmu-alias.h"

#include <glib.h>
#include <string.h>

#include "perf/pmu/test-fixture.h"

static void test_texts(void) {
        static const struct {
                const char *text;
                bool good;
                uint64_t config;
        } texts[] = {
                { "event=0x11", true, 0x11 },
                { "event=0x0011", true, 0x11 },
                { "event=0x00,umask=0x4", true, 0x400 },
                { "event=0xffff", true, 0xffff },
                { "event=0x10000" },
                { "event=0x100,umask=0x1" },
                { "event=0x1,umask=0x100" },
                { "event=0xcd,umask=0x1,ldlat=3" },
                { "event=0x1,ldlat=3" },
                { "event=" },
                { "event=?" },
                { "umask=0x1,event=0x2" },
                { "" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
                uint64_t config = 0;

                g_test_message("'%s'", texts[i].text);
                g_assert_true(pmu_alias_parse(texts[i].text, &config) == texts[i].good);
                if (texts[i].good)
                        g_assert_cmpuint(config, ==, texts[i].config);
        }
        g_assert_false(pmu_alias_parse("event=0x00000000000000000000000000000000000000000000000000"
                                       "00000000000000000000001",
                                       &(uint64_t){ 0 }));
}

static int collect(void *userdata, const PmuEvent *alias) {
        g_string_append_printf(userdata, "%s=%u/%" G_GINT64_MODIFIER "x ", alias->name, alias->type,
                               alias->config);
        return strcmp(alias->name, "slots") == 0;
}

static void test_visit(void) {
        char *tree = fixture_tree("intel-slots");
        g_autoptr(GString) seen = g_string_new(NULL);
        PmuTable t;

        fixture_write(tree, "cpu/events/slots.unit", "Slots");
        fixture_write(tree, "msr/type", "9");
        g_assert_cmpint(pmu_table_load(&t, tree), ==, 0);
        (void) pmu_alias_visit(tree, pmu_table_find(&t, "cpu"), collect, seen);
        g_assert_nonnull(strstr(seen->str, "slots=4/400 "));
        g_assert_null(strstr(seen->str, "unit"));
        g_assert_null(strstr(seen->str, "mem-loads"));
        g_assert_cmpint(pmu_alias_visit(tree, pmu_table_find(&t, "msr"), collect, seen), ==, 0);
        pmu_table_done(&t);
        fixture_done(tree);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/pmu-alias/number-and-mask-and-nothing-else", test_texts);
        g_test_add_func("/pmu-alias/those-of-a-unit", test_visit);
        return g_test_run();
}

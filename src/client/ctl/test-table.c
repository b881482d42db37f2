/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/ctl/table.h"

#include <glib.h>

static const Column columns[] = {
        { "THING", COLUMN_NUMBER },
        { "NAME", COLUMN_TEXT, "Name" },
        { "STATE", COLUMN_STATE, "State" },
        { "ON", COLUMN_BOOL, "On" },
        { "USER", COLUMN_USER, "Uid" },
        { "PMUS", COLUMN_TEXTS, "Pmus" },
        { "PIDS", COLUMN_NUMBERS, "Pids" },
        { "OF", COLUMN_PATHS, "Counters" },
        { "N", COLUMN_ALL, "N" },
        { "FOR", COLUMN_SPAN, "Span" },
        { "MORE", COLUMN_HEX, "More", .detail = true },
};

static const TableSpec spec = { "things", "No things.", columns, G_N_ELEMENTS(columns) };

/* Two objects: one with everything, one with nothing. */
static char *printed(const CtlOptions *o, size_t n_rows) {
        char *pmus[] = { (char *) "cpu", (char *) "b\"p", NULL };
        char *pids[] = { (char *) "7", (char *) "8", NULL };
        char *counters[] = { (char *) "/org/perfalloc1/counter/12", NULL };
        Property properties[] = {
                { (char *) "Name", { .kind = VALUE_TEXT, .text = (char *) "one" } },
                { (char *) "State", { .kind = VALUE_TEXT, .text = (char *) "granted" } },
                { (char *) "On", { .kind = VALUE_BOOL, .number = 1 } },
                { (char *) "Uid", { .kind = VALUE_NUMBER, .number = 0 } },
                { (char *) "Pmus", { .kind = VALUE_TEXTS, .texts = pmus } },
                { (char *) "Pids", { .kind = VALUE_NUMBERS, .texts = pids } },
                { (char *) "Counters", { .kind = VALUE_TEXTS, .texts = counters } },
                { (char *) "N", { .kind = VALUE_NUMBER, .number = 3 } },
                { (char *) "Span", { .kind = VALUE_NUMBER, .number = 1500 } },
                { (char *) "More", { .kind = VALUE_NUMBER, .number = 255 } },
        };
        const Object objects[] = {
                { .number = 1, .properties = properties, .n_properties = G_N_ELEMENTS(properties) },
                { .number = 2 },
        };
        Ctl c = { .options = o };
        char *text;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        Table *t;

        g_assert_cmpint(table_new(&c, &spec, &t), ==, 0);
        for (size_t i = 0; i < n_rows; i++)
                table_add_object(t, &objects[i]);
        g_assert_cmpuint(table_rows(t), ==, n_rows);
        g_assert_cmpint(table_print(t, f), ==, 0);
        table_free(t);
        g_assert_cmpint(fclose(f), ==, 0);
        return text;
}

/* The cells alone: versions of libsmartcols differ in the blanks around them. */
static char *cells(const char *text) {
        g_autoptr(GRegex) blanks = g_regex_new(" +", 0, 0, NULL);
        g_autoptr(GRegex) ends = g_regex_new("^ | $", G_REGEX_MULTILINE, 0, NULL);
        g_autofree char *single = g_regex_replace_literal(blanks, text, -1, 0, " ", 0, NULL);

        return g_regex_replace_literal(ends, single, -1, 0, "", 0, NULL);
}

static void assert_printed(const CtlOptions *o, size_t n_rows, const char *expected) {
        char *text = printed(o, n_rows);
        g_autofree char *found = cells(text), *wanted = cells(expected);

        g_assert_cmpstr(found, ==, wanted);
        free(text);
}

static void people_see_words(void) {
        const CtlOptions o = {};

        assert_printed(&o, 2,
                       "THING NAME STATE   ON  USER PMUS    PIDS OF   N FOR\n"
                       "    1 one  granted yes root cpu,b\"p 7,8  12   3 1ms\n"
                       "    2 -    -       no  root -       -    -  all 0us\n");
}

static void headings_can_be_left_out(void) {
        const CtlOptions o = { .no_legend = true };

        assert_printed(&o, 1, "    1 one  granted yes root cpu,b\"p 7,8  12 3 1ms\n");
}

static void emptiness_is_said(void) {
        const CtlOptions loud = {}, silent = { .no_legend = true };

        assert_printed(&loud, 0, "No things.\n");
        assert_printed(&silent, 0, "");
}

/* Every member is there, of its type, and detail too. */
static void machines_see_values(void) {
        const CtlOptions o = { .json = true };
        char *text = printed(&o, 2), *bare = g_strdup(text), *p = bare;

        for (const char *q = text; *q; q++)
                if (*q != '\n' && *q != '\t')
                        *p++ = *q;
        *p = '\0';
        g_assert_cmpstr(bare, ==,
                        "{\"things\": [{\"thing\": 1,\"name\": \"one\",\"state\": \"granted\","
                        "\"on\": true,\"user\": 0,\"pmus\": [\"cpu\",\"b\\\"p\"],\"pids\": [7,8],"
                        "\"of\": [\"/org/perfalloc1/counter/12\"],\"n\": 3,\"for\": 1500,"
                        "\"more\": 255},"
                        "{\"thing\": 2,\"name\": \"\",\"state\": \"\",\"on\": false,\"user\": 0,"
                        "\"pmus\": [],\"pids\": [],\"of\": [],\"n\": 0,\"for\": 0,\"more\": 0}]}");
        g_free(bare);
        free(text);
}

static void machines_see_emptiness(void) {
        const CtlOptions o = { .json = true };

        assert_printed(&o, 0, "{\n\t\"things\": []\n}\n");
}

static void nothing_is_null(void) {
        const CtlOptions o = { .json = true };
        static const Column column[] = { { "A", COLUMN_NUMBER } };
        static const TableSpec one = { "all", NULL, column, 1 };
        Ctl c = { .options = &o };
        char *text;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        Table *t;

        g_assert_cmpint(table_new(&c, &one, &t), ==, 0);
        table_add_row(t);
        g_assert_cmpint(table_print(t, f), ==, 0);
        g_assert_cmpint(fclose(f), ==, 0);
        g_assert_nonnull(strstr(text, "\"a\": null"));
        table_free(t);
        free(text);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/table/people-see-words", people_see_words);
        g_test_add_func("/table/headings-can-be-left-out", headings_can_be_left_out);
        g_test_add_func("/table/emptiness-is-said", emptiness_is_said);
        g_test_add_func("/table/machines-see-values", machines_see_values);
        g_test_add_func("/table/machines-see-emptiness", machines_see_emptiness);
        g_test_add_func("/table/nothing-is-null", nothing_is_null);
        return g_test_run();
}

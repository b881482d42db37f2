/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test-fixture.h"

#include <ftw.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

#define DEVICES "bus/event_source/devices"

static void write_file(const char *tree, const char *path, const char *text) {
        g_autofree char *full = g_build_filename(tree, path, NULL);
        FILE *f = fopen(full, "we");

        if (!f) {
                g_autofree char *directory = g_path_get_dirname(full);

                g_assert_no_errno(g_mkdir_with_parents(directory, 0755));
                f = fopen(full, "we");
        }
        g_assert_nonnull(f);
        g_assert_cmpint(fprintf(f, "%s\n", text), >, 0);
        g_assert_cmpint(fclose(f), ==, 0);
}

/* Replaces the text between two positions by a number. */
static char *put_number(const char *text, const char *from, const char *to, int number) {
        return g_strdup_printf("%.*s%d%s", (int) (from - text), text, number, to);
}

/* Writes one file, or one for each number of "{A-B}" in its path. */
static void write_files(const char *tree, const char *path, const char *text) {
        const char *brace = strchr(path, '{'), *place = strchr(text, '{');
        int first, last, end, plus = 0;

        if (!brace) {
                write_file(tree, path, text);
                return;
        }
        g_assert_cmpint(sscanf(brace, "{%d-%d}%n", &first, &last, &end), ==, 2);
        if (place && place[1] != '}')
                g_assert_cmpint(sscanf(place, "{+%d}", &plus), ==, 1);
        for (int i = first; i <= last; i++) {
                g_autofree char *one = put_number(path, brace, brace + end, i);
                g_autofree char *its =
                        place ? put_number(text, place, strchr(place, '}') + 1, i + plus)
                              : g_strdup(text);

                write_file(tree, one, its);
        }
}

char *fixture_empty(void) {
        char *tree = g_dir_make_tmp("perfalloc-sysfs-XXXXXX", NULL);
        g_autofree char *devices = g_build_filename(tree, DEVICES, NULL);

        g_assert_nonnull(tree);
        g_assert_no_errno(g_mkdir_with_parents(devices, 0755));
        return tree;
}

char *fixture_tree(const char *name) {
        const char *directory = g_getenv("PERFALLOC_FIXTURES");
        g_autofree char *file =
                g_strdup_printf("%s/%s.tree", directory ? directory : FIXTURE_DIR, name);
        g_autofree char *text = NULL, *above = g_strdup("");
        g_auto(GStrv) lines = NULL;
        char *tree = fixture_empty();

        if (!g_file_get_contents(file, &text, NULL, NULL))
                g_error("cannot read %s; PERFALLOC_FIXTURES says where tests/sysfs is", file);
        lines = g_strsplit(text, "\n", -1);
        for (char **line = lines; *line; line++) {
                char *equals = strstr(*line, " =");

                if (**line == '#' || **line == '\0')
                        continue;
                if (**line == '[') {
                        g_free(above);
                        above = g_strndup(*line + 1, strcspn(*line + 1, "]"));
                } else {
                        g_autofree char *path = NULL;

                        g_assert_nonnull(equals);
                        *equals = '\0';
                        path = g_build_filename(above, *line, NULL);
                        write_files(tree, path, g_strstrip(equals + 2));
                }
        }
        return tree;
}

void fixture_write(const char *tree, const char *path, const char *text) {
        g_autofree char *full = g_build_filename(DEVICES, path, NULL);

        write_file(tree, full, text);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
        return remove(path);
}

void fixture_done(char *tree) {
        g_assert_no_errno(nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS));
        g_free(tree);
}

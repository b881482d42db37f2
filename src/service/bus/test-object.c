/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/bus/object.h"

#include <glib.h>
#include <search.h>
#include <string.h>

#include "service/util/options.h"

#define N_OBJECTS 1000u

static void test_number_is_read_back_as_it_was_written(void) {
        static const uint64_t numbers[] = { 1, 9, 10, 64, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX };

        for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
                g_autofree char *path =
                        g_strdup_printf("/org/perfalloc1/hold/%" G_GUINT64_FORMAT, numbers[i]);
                uint64_t number = 0;

                g_assert_true(object_path_number(path, "hold", &number));
                g_assert_cmpuint(number, ==, numbers[i]);
        }
}

static void test_other_spellings_are_no_object(void) {
        static const char *const paths[] = {
                "/org/perfalloc1/hold/0",
                "/org/perfalloc1/hold/01",
                "/org/perfalloc1/hold/1x",
                "/org/perfalloc1/hold/x1",
                "/org/perfalloc1/hold/0x1",
                "/org/perfalloc1/hold/_1",
                "/org/perfalloc1/hold/-1",
                "/org/perfalloc1/hold/+1",
                "/org/perfalloc1/hold/ 1",
                "/org/perfalloc1/hold/1 ",
                "/org/perfalloc1/hold/1.0",
                "/org/perfalloc1/hold/18446744073709551616",
                "/org/perfalloc1/hold/18446744073709551617",
                "/org/perfalloc1/hold/99999999999999999999999999",
                "/org/perfalloc1/hold/",
                "/org/perfalloc1/hold",
                "/org/perfalloc1/hold/1/1",
                "/org/perfalloc1/hold//1",
                "/org/perfalloc1/counter/1",
                "/org/perfalloc1/holder/1",
                "/org/perfalloc11/hold/1",
                "/org/perfalloc1/1",
                "/hold/1",
                "/1",
                "/",
                "1",
                "",
        };

        for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
                uint64_t number = 77;

                if (object_path_number(paths[i], "hold", &number))
                        g_error("'%s' is taken for %" G_GUINT64_FORMAT, paths[i], number);
                g_assert_cmpuint(number, ==, 77);
        }
}

static void test_long_paths_are_no_object(void) {
        g_autofree char *zeros = g_strnfill(100000, '0');
        g_autofree char *path = g_strconcat("/org/perfalloc1/hold/", zeros, "1", NULL);
        uint64_t number;

        g_assert_false(object_path_number(path, "hold", &number));
}

/* ---- enumerating ---- */

static int compare(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return x < y ? -1 : x > y;
}

static int fail_at; /* the number of the object whose path cannot be made */

static int path_of(const void *object, char **ret) {
        const uint64_t *number = object;

        if ((int) *number == fail_at)
                return -ENOMEM;
        *ret = g_strdup_printf("/x/%" G_GUINT64_FORMAT, *number);
        return 0;
}

static void nothing(void *object) {
}

static void test_every_object_is_enumerated_once(void) {
        uint64_t objects[N_OBJECTS];
        void *tree = NULL;

        fail_at = -1;
        for (unsigned n = 0; n < N_OBJECTS; n++) {
                g_auto(GStrv) paths = NULL;

                objects[n] = n;
                g_assert_nonnull(tsearch(&objects[n], &tree, compare));
                if (n > 70 && n + 1 != N_OBJECTS)
                        continue;
                g_assert_cmpint(object_enumerate(tree, path_of, &paths), ==, 0);
                g_assert_cmpuint(g_strv_length(paths), ==, n + 1);
                for (unsigned i = 0; i <= n; i++) {
                        g_autofree char *path = g_strdup_printf("/x/%u", i);

                        g_assert_true(g_strv_contains((const char *const *) paths, path));
                }
        }
        tdestroy(tree, nothing);
}

static void test_no_objects_are_no_paths(void) {
        char **paths = NULL;

        g_assert_cmpint(object_enumerate(NULL, path_of, &paths), ==, 0);
        g_assert_true(!paths || !paths[0]);
        strings_free(paths);
}

static void test_lack_of_memory_leaves_nothing(void) {
        uint64_t objects[100];
        void *tree = NULL;
        char **paths = NULL;

        for (unsigned n = 0; n < G_N_ELEMENTS(objects); n++) {
                objects[n] = n;
                g_assert_nonnull(tsearch(&objects[n], &tree, compare));
        }
        for (fail_at = 0; fail_at < 100; fail_at += 9) {
                g_assert_cmpint(object_enumerate(tree, path_of, &paths), ==, -ENOMEM);
                g_assert_null(paths);
        }
        tdestroy(tree, nothing);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/object/number-is-read-back-as-it-was-written",
                        test_number_is_read_back_as_it_was_written);
        g_test_add_func("/object/other-spellings-are-no-object",
                        test_other_spellings_are_no_object);
        g_test_add_func("/object/long-paths-are-no-object", test_long_paths_are_no_object);
        g_test_add_func("/object/every-object-is-enumerated-once",
                        test_every_object_is_enumerated_once);
        g_test_add_func("/object/no-objects-are-no-paths", test_no_objects_are_no_paths);
        g_test_add_func("/object/lack-of-memory-leaves-nothing",
                        test_lack_of_memory_leaves_nothing);
        return g_test_run();
}

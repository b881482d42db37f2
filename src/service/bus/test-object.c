/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/bus/object.h"

#include <glib.h>
#include <limits.h>
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

/* ---- all of a kind ---- */

static const ObjectKind kind = { .name = "x" };

static unsigned strdups_left = UINT_MAX; /* until one fails */

/* Replaces the library's: fails when a test wants it to. */
char *strdup(const char *text) {
        char *copy = strdups_left == 0 ? NULL : malloc(strlen(text) + 1);

        strdups_left -= strdups_left < UINT_MAX;
        return copy ? strcpy(copy, text) : NULL;
}

static void objects_up(Objects *all, Object *objects, unsigned n) {
        *all = (Objects){ .kind = &kind };
        for (unsigned i = 0; i < n; i++) {
                objects[i] = (Object){};
                g_assert_cmpint(object_enter(&objects[i], all, i + 1), ==, 0);
        }
        g_assert_cmpuint(all->n, ==, n);
}

static void objects_down(Objects *all, Object *objects, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                object_leave(&objects[i], all);
        g_assert_cmpuint(all->n, ==, 0);
        g_assert_null(all->tree);
}

static void test_every_object_is_enumerated_once(void) {
        static const unsigned numbers[] = { 1, 2, 17, 70, N_OBJECTS };
        static Object objects[N_OBJECTS];
        Objects all;

        for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++) {
                char **paths;

                objects_up(&all, objects, numbers[i]);
                g_assert_cmpint(objects_enumerate(&all, &paths), ==, 0);
                g_assert_cmpuint(g_strv_length(paths), ==, numbers[i]);
                for (unsigned n = 1; n <= numbers[i]; n++) {
                        g_autofree char *path = g_strdup_printf("/org/perfalloc1/x/%u", n);

                        g_assert_true(g_strv_contains((const char *const *) paths, path));
                }
                strings_free(paths);
                objects_down(&all, objects, numbers[i]);
        }
}

static void test_no_objects_are_no_paths(void) {
        Objects all = { .kind = &kind };
        char **paths = NULL;

        g_assert_cmpint(objects_enumerate(&all, &paths), ==, 0);
        g_assert_true(!paths || !paths[0]);
        strings_free(paths);
}

static void test_lack_of_memory_leaves_nothing(void) {
        Object objects[100];
        Objects all;
        char **paths = NULL;

        objects_up(&all, objects, G_N_ELEMENTS(objects));
        for (unsigned i = 0; i < G_N_ELEMENTS(objects); i += 9) {
                strdups_left = i;
                g_assert_cmpint(objects_enumerate(&all, &paths), ==, -ENOMEM);
                g_assert_null(paths);
                strdups_left = UINT_MAX;
        }
        objects_down(&all, objects, G_N_ELEMENTS(objects));
}

static void test_number_is_one_object_s(void) {
        Object objects[3], other = {};
        Objects all;

        objects_up(&all, objects, G_N_ELEMENTS(objects));
        g_assert_cmpint(object_enter(&other, &all, 2), ==, -EEXIST);
        g_assert_null(other.path);
        object_leave(&other, &all); /* changes nothing */
        for (unsigned i = 0; i < G_N_ELEMENTS(objects); i++) {
                g_assert_true(objects_find(&all, i + 1) == &objects[i]);
                g_assert_true(objects_find_path(&all, objects[i].path) == &objects[i]);
        }
        g_assert_null(objects_find(&all, 4));
        objects_down(&all, objects, G_N_ELEMENTS(objects));
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
        g_test_add_func("/object/number-is-one-object-s", test_number_is_one_object_s);
        return g_test_run();
}

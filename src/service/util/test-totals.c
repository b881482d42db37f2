/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/util/totals.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/mman.h>

#include "core/clock.h"

typedef struct Place {
        char *directory, *file;
} Place;

static void place_up(Place *p, gconstpointer unused) {
        p->directory = g_dir_make_tmp("perfalloc-totals-XXXXXX", NULL);
        p->file = g_build_filename(p->directory, "totals", NULL);
}

static void place_down(Place *p, gconstpointer unused) {
        (void) g_remove(p->file);
        g_assert_cmpint(g_rmdir(p->directory), ==, 0);
        g_free(p->directory);
        g_free(p->file);
}

/* A process that ends without a word leaves the file as it is: so does this. */
static Totals totals_crash_and_open(Totals *before, const Place *p) {
        Totals t;

        g_assert_cmpint(munmap(before->file, sizeof(TotalsPage)), ==, 0);
        g_assert_cmpint(totals_open(&t, p->directory), ==, 0);
        return t;
}

static void test_go_on_after_a_crash(Place *p, gconstpointer unused) {
        Totals t;

        g_assert_cmpint(totals_open(&t, p->directory), ==, 0);
        totals_add(&t, TOTAL_DENIALS, 3);
        t = totals_crash_and_open(&t, p);
        totals_add(&t, TOTAL_DENIALS, 4);
        g_assert_cmpuint(totals_value(&t, TOTAL_DENIALS), ==, 7);
        g_assert_cmpuint(totals_value(&t, TOTAL_STARTS), ==, 2);
        totals_close(&t);
}

/* The clock is put forward by putting the beginning back. */
static void level_age(Totals *t, Level level, uint64_t usec) {
        t->file->levels[level].since_usec -= usec;
}

static void assert_about(uint64_t found, uint64_t expected) {
        g_assert_cmpuint(found, >=, expected);
        g_assert_cmpuint(found, <, expected + 60 * USEC_PER_SEC);
}

static void test_levels_add_up_while_they_last(Place *p, gconstpointer unused) {
        const uint64_t hour = 3600 * USEC_PER_SEC;
        Totals t;

        g_assert_cmpint(totals_open(&t, p->directory), ==, 0);
        totals_level(&t, LEVEL_HELD, 1);
        totals_level(&t, LEVEL_HELD, 1);
        level_age(&t, LEVEL_HELD, hour);
        assert_about(totals_value(&t, TOTAL_HELD_USEC), 2 * hour);
        totals_level(&t, LEVEL_HELD, -1);
        level_age(&t, LEVEL_HELD, hour);
        assert_about(totals_value(&t, TOTAL_HELD_USEC), 3 * hour);
        totals_level(&t, LEVEL_HELD, -1);
        level_age(&t, LEVEL_HELD, hour);
        assert_about(totals_value(&t, TOTAL_HELD_USEC), 3 * hour);
        g_assert_cmpuint(totals_value(&t, TOTAL_YIELDED_USEC), ==, 0);
        totals_close(&t);
}

/* What outlives the restart counts on meanwhile; what does not has ended with the process. */
static void test_levels_outlive_a_restart(Place *p, gconstpointer unused) {
        const uint64_t hour = 3600 * USEC_PER_SEC;
        Totals t;

        g_assert_cmpint(totals_open(&t, p->directory), ==, 0);
        totals_level(&t, LEVEL_HELD, 1);
        totals_level(&t, LEVEL_YIELDED, 1);
        t = totals_crash_and_open(&t, p);
        level_age(&t, LEVEL_HELD, hour);
        level_age(&t, LEVEL_YIELDED, hour);
        totals_level(&t, LEVEL_HELD, 1); /* is restored */
        totals_settle(&t);
        assert_about(totals_value(&t, TOTAL_HELD_USEC), hour);
        g_assert_cmpuint(totals_value(&t, TOTAL_YIELDED_USEC), <, hour);
        totals_close(&t);
}

/* All that lasted has ended with a stop: only its time until then counts. */
static void test_levels_end_with_a_stop(Place *p, gconstpointer unused) {
        const uint64_t hour = 3600 * USEC_PER_SEC;
        Totals t;

        g_assert_cmpint(totals_open(&t, p->directory), ==, 0);
        totals_level(&t, LEVEL_HELD, 1);
        level_age(&t, LEVEL_HELD, hour);
        totals_close(&t);
        g_assert_cmpint(totals_open(&t, p->directory), ==, 0);
        level_age(&t, LEVEL_HELD, hour); /* it was down */
        totals_settle(&t);
        assert_about(totals_value(&t, TOTAL_HELD_USEC), hour);
        totals_close(&t);
}

static void test_what_was_told_is_never_taken_back(Place *p, gconstpointer unused) {
        const uint64_t hour = 3600 * USEC_PER_SEC;
        uint64_t told;
        Totals t;

        g_assert_cmpint(totals_open(&t, p->directory), ==, 0);
        totals_level(&t, LEVEL_HELD, 1);
        level_age(&t, LEVEL_HELD, hour);
        told = totals_value(&t, TOTAL_HELD_USEC);
        t = totals_crash_and_open(&t, p);
        totals_settle(&t);
        g_assert_cmpuint(totals_value(&t, TOTAL_HELD_USEC), >=, told);
        totals_close(&t);
}

static void test_without_a_directory_they_start_from_0(void) {
        Totals t;

        g_assert_cmpint(totals_open(&t, NULL), ==, -ENOENT);
        totals_add(&t, TOTAL_TICKS, 5);
        g_assert_cmpuint(totals_value(&t, TOTAL_TICKS), ==, 5);
        totals_close(&t);
        g_assert_cmpint(totals_open(&t, "/nonexistent"), ==, -ENOENT);
        g_assert_cmpuint(totals_value(&t, TOTAL_TICKS), ==, 0);
        totals_close(&t);
}

/* One of another version of the service is either shorter, and goes on, or is not understood. */
static void test_files_of_others(Place *p, gconstpointer unused) {
        TotalsPage page = { .version = 1, .values = { [TOTAL_HOLDS_RELEASED] = 8 } };
        Totals t;

        g_assert_true(g_file_set_contents(p->file, (const char *) &page,
                                          offsetof(TotalsPage, values[1]), NULL));
        g_assert_cmpint(totals_open(&t, p->directory), ==, 0);
        g_assert_cmpuint(totals_value(&t, TOTAL_HOLDS_RELEASED), ==, 8);
        g_assert_cmpuint(totals_value(&t, TOTAL_TICKS), ==, 0);
        totals_close(&t);

        page.version = 77;
        g_assert_true(g_file_set_contents(p->file, (const char *) &page, sizeof(page), NULL));
        g_assert_cmpint(totals_open(&t, p->directory), ==, 0);
        g_assert_cmpuint(totals_value(&t, TOTAL_HOLDS_RELEASED), ==, 0);
        totals_close(&t);
}

static void test_each_has_a_name(void) {
        for (Total a = 0; a < _TOTAL_MAX; a++) {
                g_assert_nonnull(total_name(a));
                for (Total b = 0; b < a; b++)
                        g_assert_cmpstr(total_name(a), !=, total_name(b));
        }
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

#define ADD(path, f) g_test_add(path, Place, NULL, place_up, f, place_down)
        ADD("/totals/go-on-after-a-crash", test_go_on_after_a_crash);
        ADD("/totals/levels-add-up-while-they-last", test_levels_add_up_while_they_last);
        ADD("/totals/levels-outlive-a-restart", test_levels_outlive_a_restart);
        ADD("/totals/levels-end-with-a-stop", test_levels_end_with_a_stop);
        ADD("/totals/what-was-told-is-never-taken-back", test_what_was_told_is_never_taken_back);
        g_test_add_func("/totals/without-a-directory-they-start-from-0",
                        test_without_a_directory_they_start_from_0);
        ADD("/totals/files-of-other-versions", test_files_of_others);
        g_test_add_func("/totals/each-has-a-name", test_each_has_a_name);

        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/process/seize-rounds.h"

#include <glib.h>

/* What each look finds: 'n' something new, '-' nothing, 'x' a refusal. */
typedef struct Looks {
        const char *next;
} Looks;

static int look(void *userdata, bool *ret_new) {
        Looks *l = userdata;

        g_assert_cmpint(*l->next, !=, '\0');
        *ret_new = *l->next == 'n';
        return *l->next++ == 'x' ? 7 : 0;
}

/* All the looks are needed, and no more. */
static void assert_takes(const char *looks, int expected) {
        Looks l = { looks };

        g_assert_cmpint(seize_rounds(look, &l), ==, expected);
        g_assert_cmpstr(l.next, ==, "");
}

/* A child that was born before its parent stood may be left out by the first look that follows,
 * while a sibling is killed. */
static void test_two_quiet_rounds_are_needed(void) {
        assert_takes("--", 0);
        assert_takes("n--", 0);
}

static void test_they_follow_each_other(void) {
        assert_takes("n-n-n--", 0);
}

static void test_a_refusal_ends_it(void) {
        assert_takes("x", 7);
        assert_takes("n-x", 7);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/seize-rounds/two-quiet-rounds-are-needed",
                        test_two_quiet_rounds_are_needed);
        g_test_add_func("/seize-rounds/they-follow-each-other", test_they_follow_each_other);
        g_test_add_func("/seize-rounds/a-refusal-ends-it", test_a_refusal_ends_it);
        return g_test_run();
}

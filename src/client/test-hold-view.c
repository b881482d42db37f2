/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/hold-view.h"

#include <glib.h>

#include "client/grant.h"

static char *cpu[] = { (char *) "cpu", NULL };
static char *atom_and_core[] = { (char *) "cpu_atom", (char *) "cpu_core", NULL };
static char *no_pmus[] = { NULL };

/* Texts are not freed: none of these is given to hold_view_done(). */
static HoldView view(uint64_t id, char **pmus, const char *cpus, const char *state) {
        return (HoldView){ .id = id,
                           .uid = 4294967294, /* not a user of this machine */
                           .pid = 4711,
                           .pmus = pmus,
                           .cpus = (char *) cpus,
                           .mode = (char *) "shared",
                           .state = (char *) state };
}

static void assert_words(char *words, const char *expected) {
        g_assert_cmpstr(words, ==, expected);
        free(words);
}

static void number_is_read_from_path_of_hold_alone(void) {
        g_assert_cmpuint(hold_view_id("/org/perfalloc1/hold/12"), ==, 12);
        g_assert_cmpuint(hold_view_id("/org/perfalloc1/counter/12"), ==, 0);
        g_assert_cmpuint(hold_view_id("/org/perfalloc1/hold/"), ==, 0);
        g_assert_cmpuint(hold_view_id("/org/perfalloc1/hold/12/x"), ==, 0);
        g_assert_cmpuint(hold_view_id("/org/perfalloc1"), ==, 0);
}

static void earlier_holds_of_same_counters_precede(void) {
        HoldView own = view(5, cpu, "0-3", "queued"), other = view(4, cpu, "3-7", "granted");

        g_assert_true(hold_view_precedes(&other, &own));
        g_assert_false(hold_view_precedes(&own, &other));
        other = view(4, cpu, "4-7", "granted");
        g_assert_false(hold_view_precedes(&other, &own));
        other = view(4, atom_and_core, "0-3", "granted");
        g_assert_false(hold_view_precedes(&other, &own));
        other = view(4, cpu, "0-3", "ended");
        g_assert_false(hold_view_precedes(&other, &own));
        other = view(4, cpu, NULL, NULL);
        g_assert_false(hold_view_precedes(&other, &own));
}

static void scope_is_told_in_words(void) {
        HoldView v = view(1, cpu, "0-3", "granted");

        assert_words(hold_view_scope(&v), "all counters of cpu on CPUs 0-3");
        v.counters = 2;
        assert_words(hold_view_scope(&v), "2 counters of cpu on each of CPUs 0-3");
        v.cpus = (char *) "7";
        v.counters = 1;
        assert_words(hold_view_scope(&v), "1 counter of cpu on CPU 7");
        v = view(1, atom_and_core, "0,2", "granted");
        assert_words(hold_view_scope(&v), "all counters of cpu_atom, cpu_core on CPUs 0,2");
        assert_words(hold_view_holder(&v),
                     "pid 4711 of uid 4294967294 (all counters of cpu_atom, cpu_core on CPUs 0,2, "
                     "shared, granted)");
}

static void grant_says_what_is_held_and_how_sure_that_is(void) {
        HoldView v = view(1, cpu, "0-1", "granted");

        assert_words(grant_words(&v, true, 143),
                     "holding all counters of cpu on CPUs 0-1 (confirmed in 143 µs)");
        v.mode = (char *) "exclusive";
        assert_words(grant_words(&v, true, 12345),
                     "holding all counters of cpu on CPUs 0-1, exclusively (confirmed in 12.3 ms)");
        v.obstacles = (char *) "hog (pid 7)";
        assert_words(
                grant_words(&v, false, 2109999),
                "warning: holding all counters of cpu on CPUs 0-1, exclusively, but they are not "
                "confirmed to be free (after 2.10 s); in the way: hog (pid 7)");
}

static void grant_of_nothing_says_so(void) {
        HoldView v = view(1, no_pmus, "0-1", "granted");
        char *words = grant_words(&v, true, 1);

        g_assert_nonnull(strstr(words, "nothing to reserve"));
        free(words);
}

static void grant_that_could_not_be_read_still_has_words(void) {
        HoldView v = HOLD_VIEW_NULL;

        assert_words(grant_words(&v, true, 999), "holding the counters (confirmed in 999 µs)");
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/hold-view/number-is-read-from-path-of-hold-alone",
                        number_is_read_from_path_of_hold_alone);
        g_test_add_func("/hold-view/earlier-holds-of-same-counters-precede",
                        earlier_holds_of_same_counters_precede);
        g_test_add_func("/hold-view/scope-is-told-in-words", scope_is_told_in_words);
        g_test_add_func("/grant/says-what-is-held-and-how-sure-that-is",
                        grant_says_what_is_held_and_how_sure_that_is);
        g_test_add_func("/grant/of-nothing-says-so", grant_of_nothing_says_so);
        g_test_add_func("/grant/that-could-not-be-read-still-has-words",
                        grant_that_could_not_be_read_still_has_words);
        return g_test_run();
}

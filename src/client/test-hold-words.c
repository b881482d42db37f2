/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/hold-words.h"

#include <glib.h>
#include <string.h>

static char *cpu[] = { (char *) "cpu", NULL };
static char *atom_and_core[] = { (char *) "cpu_atom", (char *) "cpu_core", NULL };
static char *no_pmus[] = { NULL };

/* A hold, and its properties, which point to nothing that is freed. */
typedef struct Hold {
        Property uid, pid, counters, pmus, cpus, mode, state, obstacles, unattended, tag;
} Hold;

static Property number(const char *name, uint64_t n) {
        return (Property){ (char *) name, { .kind = VALUE_NUMBER, .number = n } };
}

static Property text(const char *name, const char *word) {
        return (Property){ (char *) name, { .kind = VALUE_TEXT, .text = (char *) word } };
}

static Property texts(const char *name, char **words) {
        return (Property){ (char *) name, { .kind = VALUE_TEXTS, .texts = words } };
}

static Hold hold(char **pmus, const char *cpus, const char *state) {
        return (Hold){ .uid = number("Uid", 4294967294), /* not a user of this machine */
                       .pid = number("Pid", 4711),
                       .counters = number("Counters", 0),
                       .pmus = texts("Pmus", pmus),
                       .cpus = text("Cpus", cpus),
                       .mode = text("Mode", "shared"),
                       .state = text("State", state),
                       .obstacles = texts("Obstacles", NULL),
                       .unattended = number("Unattended", 0),
                       .tag = text("Tag", "") };
}

static Object seen(Hold *h, uint64_t n) {
        return (Object){ .number = n,
                         .properties = (Property *) h,
                         .n_properties = sizeof(Hold) / sizeof(Property) };
}

static void assert_words(char *words, const char *expected) {
        g_assert_cmpstr(words, ==, expected);
        free(words);
}

static void number_is_read_from_path_of_object_alone(void) {
        g_assert_cmpuint(path_number("/org/perfalloc1/hold/12"), ==, 12);
        g_assert_cmpuint(path_number("/org/perfalloc1/hold/"), ==, 0);
        g_assert_cmpuint(path_number("/org/perfalloc1/hold/12/x"), ==, 0);
        g_assert_cmpuint(path_number("/org/perfalloc1"), ==, 0);
}

static bool precedes(uint64_t n, Hold other) {
        Hold mine = hold(cpu, "0-3", "queued");
        Object own = seen(&mine, 5), o = seen(&other, n);

        return hold_precedes(&o, &own);
}

static void earlier_holds_of_same_counters_precede(void) {
        g_assert_true(precedes(4, hold(cpu, "3-7", "granted")));
        g_assert_false(precedes(6, hold(cpu, "3-7", "granted")));
        g_assert_false(precedes(4, hold(cpu, "4-7", "granted")));
        g_assert_false(precedes(4, hold(atom_and_core, "0-3", "granted")));
        g_assert_false(precedes(4, hold(cpu, "0-3", "ended")));
        g_assert_false(precedes(4, hold(cpu, NULL, NULL)));
}

static void scope_is_told_in_words(void) {
        Hold h = hold(cpu, "0-3", "granted");
        Object o = seen(&h, 1);

        assert_words(hold_words_scope(&o), "all counters of cpu on CPUs 0-3");
        h.counters = number("Counters", 2);
        assert_words(hold_words_scope(&o), "2 counters of cpu on each of CPUs 0-3");
        h.cpus = text("Cpus", "7");
        h.counters = number("Counters", 1);
        assert_words(hold_words_scope(&o), "1 counter of cpu on CPU 7");
        h = hold(atom_and_core, "0,2", "granted");
        assert_words(hold_words_scope(&o), "all counters of cpu_atom, cpu_core on CPUs 0,2");
        assert_words(hold_words_holder(&o, "make"),
                     "uid 4294967294, make (pid 4711): all counters of cpu_atom, cpu_core on CPUs "
                     "0,2, shared, granted");
        assert_words(hold_words_holder(&o, ""),
                     "uid 4294967294, pid 4711: all counters of cpu_atom, cpu_core on CPUs 0,2, "
                     "shared, granted");
}

static void unattended_hold_is_named_by_its_number_and_tag(void) {
        char command[COMMAND_NAME_MAX];
        Hold h = hold(cpu, "0-3", "granted");
        Object o = seen(&h, 12);

        h.unattended = number("Unattended", 1);
        h.tag = text("Tag", "job-7");
        assert_words(hold_words_holder(&o, "another"),
                     "uid 4294967294, hold 12, tag job-7: all counters of cpu on CPUs 0-3, shared, "
                     "granted");
        g_assert_cmpstr(hold_words_command(&o, command), ==, "");
}

static void grant_says_what_is_held_and_how_sure_that_is(void) {
        char *one[] = { (char *) "hog (pid 7)", NULL };
        Hold h = hold(cpu, "0-1", "granted");
        Object o = seen(&h, 1);

        assert_words(hold_words_grant(&o, true, 143),
                     "holding all counters of cpu on CPUs 0-1 (confirmed in 143 µs)");
        h.mode = text("Mode", "exclusive");
        assert_words(hold_words_grant(&o, true, 12345),
                     "holding all counters of cpu on CPUs 0-1 exclusively (confirmed in 12.3 ms)");
        h.obstacles = texts("Obstacles", one);
        assert_words(hold_words_grant(&o, false, 2109999),
                     "warning: holding all counters of cpu on CPUs 0-1 exclusively (after 2.10 s), "
                     "but not "
                     "confirmed to be free; in use by: hog (pid 7)");
}

static void grant_that_nobody_can_confirm_blames_nobody(void) {
        char *msr[] = { (char *) "msr", NULL }, *none[] = { NULL };
        Hold h = hold(msr, "0-1", "granted");
        Object o = seen(&h, 1);

        assert_words(
                hold_words_grant(&o, false, 143),
                "warning: holding all counters of msr on CPUs 0-1 (after 143 µs), but not "
                "confirmed to be free: the counters of PMU msr on CPUs 0-1 cannot be measured");
        h.pmus = texts("Pmus", atom_and_core);
        h.obstacles = texts("Obstacles", none);
        assert_words(hold_words_grant(&o, false, 143),
                     "warning: holding all counters of cpu_atom, cpu_core on CPUs 0-1 (after "
                     "143 µs), but not confirmed to be free: not all counters of PMUs cpu_atom, "
                     "cpu_core on CPUs 0-1 can be measured");
        assert_words(hold_words_grant(&OBJECT_NULL, false, 999),
                     "warning: holding the counters (after 999 µs), but not confirmed to be free");
}

static void obstacles_are_named_up_to_four(void) {
        char *six[] = { (char *) "a", (char *) "b", (char *) "c", (char *) "d",
                        (char *) "e", (char *) "f", NULL };
        Hold h = hold(cpu, "0-1", "yielding");
        Object o = seen(&h, 1);

        assert_words(hold_words_obstacles(&o), "");
        h.obstacles = texts("Obstacles", six);
        assert_words(hold_words_obstacles(&o), "a; b; c; d; and 2 more");
}

static void what_the_kernel_keeps_is_named(void) {
        char *none[] = { NULL }, *watchdog[] = { (char *) "kernel.nmi_watchdog", NULL };
        char *intel[] = { (char *) "instructions", (char *) "cycles", NULL };

        g_assert_null(hold_words_kernel("cpu", none, intel));
        g_assert_null(hold_words_kernel("cpu", NULL, NULL));
        assert_words(
                hold_words_kernel("cpu", watchdog, intel),
                "the kernel's NMI watchdog (kernel.nmi_watchdog) uses the counter of cycles "
                "of cpu on each CPU; NmiWatchdog=yes in perfallocd.conf(5) makes it available");
        assert_words(hold_words_kernel("cpu", watchdog, none),
                     "the kernel's NMI watchdog (kernel.nmi_watchdog) uses one general counter of "
                     "cpu on each CPU; NmiWatchdog=yes in perfallocd.conf(5) makes it available");
}

static void grant_of_nothing_says_so(void) {
        Hold h = hold(no_pmus, "0-1", "granted");
        Object o = seen(&h, 1);
        char *words = hold_words_grant(&o, true, 1);

        g_assert_nonnull(strstr(words, "nothing to hold"));
        free(words);
}

static void grant_that_could_not_be_read_still_has_words(void) {
        assert_words(hold_words_grant(&OBJECT_NULL, true, 999),
                     "holding the counters (confirmed in 999 µs)");
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/hold-words/number-is-read-from-path-of-object-alone",
                        number_is_read_from_path_of_object_alone);
        g_test_add_func("/hold-words/earlier-holds-of-same-counters-precede",
                        earlier_holds_of_same_counters_precede);
        g_test_add_func("/hold-words/scope-is-told-in-words", scope_is_told_in_words);
        g_test_add_func("/hold-words/unattended-hold-is-named-by-its-number-and-tag",
                        unattended_hold_is_named_by_its_number_and_tag);
        g_test_add_func("/grant/says-what-is-held-and-how-sure-that-is",
                        grant_says_what_is_held_and_how_sure_that_is);
        g_test_add_func("/grant/that-nobody-can-confirm-blames-nobody",
                        grant_that_nobody_can_confirm_blames_nobody);
        g_test_add_func("/hold-words/obstacles-are-named-up-to-four",
                        obstacles_are_named_up_to_four);
        g_test_add_func("/hold-words/what-the-kernel-keeps-is-named",
                        what_the_kernel_keeps_is_named);
        g_test_add_func("/grant/of-nothing-says-so", grant_of_nothing_says_so);
        g_test_add_func("/grant/that-could-not-be-read-still-has-words",
                        grant_that_could_not_be_read_still_has_words);
        return g_test_run();
}

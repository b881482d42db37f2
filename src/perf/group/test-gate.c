/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/group/gate.h"

#include "machine.h"
#include "perf/process/test-child.h"
#include "perf/process/test-rest.h"
#include "perf/process/tree.h"

typedef struct Births {
        unsigned n_rounds;
        unsigned until; /* something is born in each round before this one */
} Births;

static void bear(void *userdata) {
        Births *b = userdata;
        pid_t pid;

        if (b->n_rounds++ >= b->until)
                return;
        pid = fork();
        if (pid == 0)
                _exit(0);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

static void test_what_has_no_children_takes_one_round(void) {
        Births b = { .until = 10 };

        g_assert_true(gate_all(false, NULL, bear, &b));
        g_assert_cmpuint(b.n_rounds, ==, 1);
}

/* What is born in the first round may not have been reached by it. */
static void test_there_are_two_rounds_at_least(void) {
        Births b = {};

        g_assert_false(gate_all(true, NULL, bear, &b));
        g_assert_cmpuint(b.n_rounds, >=, 2);
}

static void test_it_goes_on_while_something_is_born(void) {
        Births b = { .until = 2 };

        if (tree_last_born() <= 0) {
                g_test_skip("/proc/loadavg does not tell");
                return;
        }
        g_assert_false(gate_all(true, NULL, bear, &b));
        g_assert_cmpuint(b.n_rounds, >=, 3);
}

/* A storm of forks does not keep it for ever. */
static void test_it_ends_in_a_storm(void) {
        Births b = { .until = UINT_MAX };

        g_assert_false(gate_all(true, NULL, bear, &b));
        g_assert_cmpuint(b.n_rounds, <=, 4);
}

/* Others may bear meanwhile. */
static void test_what_rests_takes_one_round(void) {
        _cleanup_(rest_done) Rest rest = REST_NULL;
        Births b = { .until = 1 };
        pid_t child = child_start(NULL, NULL);

        rest_begin(&rest, child);
        g_assert_true(gate_all(true, &rest, bear, &b));
        g_assert_cmpuint(b.n_rounds, ==, 1);
        child_end(child);
        b.n_rounds = 0;
        g_assert_false(gate_all(true, &rest, bear, &b));
        g_assert_cmpuint(b.n_rounds, >=, 2);
}

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/gate/what-has-no-children-takes-one-round",
                        test_what_has_no_children_takes_one_round);
        g_test_add_func("/gate/there-are-two-rounds-at-least", test_there_are_two_rounds_at_least);
        g_test_add_func("/gate/it-goes-on-while-something-is-born",
                        test_it_goes_on_while_something_is_born);
        g_test_add_func("/gate/what-rests-takes-one-round", test_what_rests_takes_one_round);
        g_test_add_func("/gate/it-ends-in-a-storm", test_it_ends_in_a_storm);
        return g_test_run();
}

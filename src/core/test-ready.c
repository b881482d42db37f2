/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ready.h"

#include <glib.h>

#define N_NODES 200

/* Anybody may leave at any time; the first is the one with the lowest number among those that are
 * in. */
static void test_first_is_the_lowest(void) {
        ReadyNode nodes[N_NODES] = {};
        bool in[N_NODES] = {};
        Ready ready = {};

        for (int step = 0; step < 200000; step++) {
                int i = g_test_rand_int_range(0, N_NODES), lowest = 0;

                nodes[i].seq = (uint64_t) i;
                if (in[i])
                        ready_remove(&ready, &nodes[i]);
                else
                        ready_insert(&ready, &nodes[i]);
                in[i] = !in[i];
                while (lowest < N_NODES && !in[lowest])
                        lowest++;
                g_assert_true(ready.first == (lowest < N_NODES ? &nodes[lowest] : NULL));
                if (ready.first && g_test_rand_bit()) {
                        ready_remove(&ready, ready.first);
                        in[lowest] = false;
                }
        }
}

static void test_comes_out_in_order(void) {
        ReadyNode nodes[N_NODES] = {};
        Ready ready = {};

        for (int i = 0; i < N_NODES; i++) {
                nodes[i].seq = (uint64_t) g_test_rand_int();
                ready_insert(&ready, &nodes[i]);
        }
        for (uint64_t last = 0; ready.first; ready_remove(&ready, ready.first)) {
                g_assert_cmpuint(ready.first->seq, >=, last);
                last = ready.first->seq;
        }
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/ready/first-is-the-lowest", test_first_is_the_lowest);
        g_test_add_func("/ready/comes-out-in-order", test_comes_out_in_order);
        return g_test_run();
}

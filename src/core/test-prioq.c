/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/prioq.h"

#include <glib.h>

#define N_NODES 64
#define STEPS   200000

static bool node_before(const PrioqNode *a, const PrioqNode *b) {
        return a->key != b->key ? a->key < b->key : a->number < b->number;
}

/* Looks at all nodes. */
static const PrioqNode *reference_first(const PrioqNode *nodes, const bool *in) {
        const PrioqNode *first = NULL;

        for (size_t i = 0; i < N_NODES; i++)
                if (in[i] && (!first || node_before(&nodes[i], first)))
                        first = &nodes[i];
        return first;
}

static uint64_t random_key(void) {
        return g_test_rand_int_range(0, 20) == 0 ? UINT64_MAX
                                                 : (uint64_t) g_test_rand_int_range(0, 100);
}

static void test_reference(void) {
        PrioqNode nodes[N_NODES] = {};
        bool in[N_NODES] = {};
        Prioq queue = {};

        for (int step = 0; step < STEPS; step++) {
                size_t i = (size_t) g_test_rand_int_range(0, N_NODES);

                if (!in[i]) {
                        nodes[i] = (PrioqNode){ .key = random_key(), .number = i };
                        prioq_put(&queue, &nodes[i]);
                        in[i] = true;
                } else if (g_test_rand_bit()) {
                        prioq_move(&queue, &nodes[i], random_key());
                } else {
                        prioq_remove(&queue, &nodes[i]);
                        in[i] = false;
                }
                g_assert_true(queue.first == reference_first(nodes, in));
                if (queue.first && g_test_rand_int_range(0, 4) == 0) {
                        in[queue.first - nodes] = false;
                        prioq_remove(&queue, queue.first);
                }
        }
}

static void test_order(void) {
        PrioqNode nodes[N_NODES] = {}, last = {};
        Prioq queue = {};

        for (size_t i = 0; i < N_NODES; i++) {
                nodes[i] = (PrioqNode){ .key = (uint64_t) g_test_rand_int(), .number = i };
                prioq_put(&queue, &nodes[i]);
        }
        for (size_t i = 0; i < N_NODES; i++) {
                g_assert_true(i == 0 || node_before(&last, queue.first));
                last = *queue.first;
                prioq_remove(&queue, queue.first);
        }
        g_assert_null(queue.first);
}

static void test_ties(void) {
        PrioqNode nodes[8];
        Prioq queue = {};

        for (size_t i = 8; i-- > 0;) {
                nodes[i] = (PrioqNode){ .key = 5, .number = i };
                prioq_put(&queue, &nodes[i]);
        }
        for (size_t i = 0; i < 8; i++) {
                g_assert_true(queue.first == &nodes[i]);
                prioq_remove(&queue, &nodes[i]);
        }
        g_assert_null(queue.first);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/prioq/first-is-the-first-of-all", test_reference);
        g_test_add_func("/prioq/comes-out-in-order", test_order);
        g_test_add_func("/prioq/ties-in-the-order-of-numbers", test_ties);
        return g_test_run();
}

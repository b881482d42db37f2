/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "prioq.h"

static bool node_before(const PrioqNode *a, const PrioqNode *b) {
        return a->key < b->key || (a->key == b->key && a->number < b->number);
}

static PrioqNode *heap_meld(PrioqNode *a, PrioqNode *b) {
        if (!a || !b)
                return a ? a : b;
        if (node_before(b, a)) {
                PrioqNode *first = b;

                b = a;
                a = first;
        }
        b->next = a->child;
        if (b->next)
                b->next->place = &b->next;
        b->place = &a->child;
        a->child = b;
        return a;
}

/* Pairs the siblings from the left, then melds the pairs from the right: that is what keeps it
 * logarithmic. */
static PrioqNode *heap_meld_siblings(PrioqNode *first) {
        PrioqNode *pairs = NULL, *root = NULL;

        while (first) {
                PrioqNode *a = first, *b = a->next, *pair;

                first = b ? b->next : NULL;
                a->next = NULL;
                if (b)
                        b->next = NULL;
                pair = heap_meld(a, b);
                pair->next = pairs;
                pairs = pair;
        }
        while (pairs) {
                PrioqNode *pair = pairs;

                pairs = pair->next;
                pair->next = NULL;
                root = heap_meld(root, pair);
        }
        return root;
}

static void prioq_add(Prioq *q, PrioqNode *root) {
        q->first = heap_meld(q->first, root);
        if (q->first)
                q->first->place = &q->first;
}

void prioq_put(Prioq *q, PrioqNode *node) {
        node->child = NULL;
        node->next = NULL;
        prioq_add(q, node);
}

void prioq_remove(Prioq *q, PrioqNode *node) {
        *node->place = node->next;
        if (node->next)
                node->next->place = node->place;
        prioq_add(q, heap_meld_siblings(node->child));
}

void prioq_move(Prioq *q, PrioqNode *node, uint64_t key) {
        prioq_remove(q, node);
        node->key = key;
        prioq_put(q, node);
}

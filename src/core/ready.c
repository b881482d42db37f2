/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ready.h"

static ReadyNode *ready_meld(ReadyNode *a, ReadyNode *b) {
        if (!a || !b)
                return a ? a : b;
        if (b->seq < a->seq) {
                ReadyNode *first = b;

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
static ReadyNode *ready_meld_siblings(ReadyNode *first) {
        ReadyNode *pairs = NULL, *root = NULL;

        while (first) {
                ReadyNode *a = first, *b = a->next, *pair;

                first = b ? b->next : NULL;
                a->next = NULL;
                if (b)
                        b->next = NULL;
                pair = ready_meld(a, b);
                pair->next = pairs;
                pairs = pair;
        }
        while (pairs) {
                ReadyNode *pair = pairs;

                pairs = pair->next;
                pair->next = NULL;
                root = ready_meld(root, pair);
        }
        return root;
}

static void ready_add(Ready *r, ReadyNode *root) {
        r->first = ready_meld(r->first, root);
        if (r->first)
                r->first->place = &r->first;
}

void ready_insert(Ready *r, ReadyNode *node) {
        node->child = NULL;
        node->next = NULL;
        ready_add(r, node);
}

void ready_remove(Ready *r, ReadyNode *node) {
        *node->place = node->next;
        if (node->next)
                node->next->place = node->place;
        ready_add(r, ready_meld_siblings(node->child));
}

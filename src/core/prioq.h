/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A priority queue: a pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986) whose nodes are
 * members of what is queued, so no operation needs memory or can fail.
 */

#include "core/util.h"

typedef struct Prioq Prioq;
typedef struct PrioqNode PrioqNode;

/* The lowest key comes first; among equal keys, the lowest number. */
struct PrioqNode {
        uint64_t key;
        uint64_t number;
        PrioqNode *child, *next;
        PrioqNode **place; /* the pointer that points here */
};

/* All zero is an empty one. Must not be moved while it has nodes. */
struct Prioq {
        PrioqNode *first; /* NULL: empty */
};

void prioq_put(Prioq *q, PrioqNode *node); /* its key and number are set */
void prioq_remove(Prioq *q, PrioqNode *node);
void prioq_move(Prioq *q, PrioqNode *node, uint64_t key); /* gives it another key */

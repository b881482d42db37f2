/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The waiting holds that can be admitted now, by their order of arrival.
 *
 * A pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986) whose nodes are in the holds, so that
 * removing one hold, which may make many others ready, needs no memory.
 */

#include "core/util.h"

typedef struct Ready Ready;
typedef struct ReadyNode ReadyNode;

struct ReadyNode {
        uint64_t seq;
        ReadyNode *child, *next;
        ReadyNode **place; /* the pointer that points here */
};

/* All zero is an empty one. Must not be moved. */
struct Ready {
        ReadyNode *first; /* the one with the lowest seq, NULL when there is none */
};

void ready_insert(Ready *r, ReadyNode *node); /* its seq is set */
void ready_remove(Ready *r, ReadyNode *node);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Work of the loop that takes longer than others should wait, in slices: between two of them calls
 * are read and handled. What a call does in slices has request_pause().
 */

#include "service/util/context.h"

typedef struct Slices Slices;

/* How long a slice takes; also what a call does before it pauses. */
#define SLICE_USEC (4 * USEC_PER_MSEC)

/* All zero: no work. */
struct Slices {
        Context *context;
        sd_event_source *turn;
        bool waiting; /* for its turn */
        void (*slice)(void *userdata);
        void *userdata;
};

int slices_init(Slices *s, Context *context, void (*slice)(void *userdata), void *userdata);
void slices_done(Slices *s);

/* slice() is called once, when others had their turn. */
void slices_go_on(Slices *s);

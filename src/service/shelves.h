/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The shelves of one generation (shelf.h), handed in to systemd as they are needed; a part of
 * store.c.
 */

#include <systemd/sd-event.h>

#include "service/shelf.h"

typedef struct Shelves Shelves;
typedef struct ShelfRow ShelfRow;

/* What goes the same way is on the same shelves. */
typedef enum ShelfKind {
        SHELF_SOON,
        SHELF_SCARCE,
        SHELF_BUNDLES, /* soon as well; but of a bundle whoever stays has to be sent anew */
        _SHELF_KIND_MAX,
} ShelfKind;

/* All shelves of a kind. */
struct ShelfRow {
        Shelves *shelves;
        LIST_HEAD(, Shelf) list;
        bool dirty; /* something is dead */
        sd_event_source *sweep;
};

struct Shelves {
        uint32_t generation;
        uint64_t next; /* number */
        size_t n;
        ShelfRow rows[_SHELF_KIND_MAX];
        void (*failed)(void *userdata, int error,
                       const char *what); /* told what goes wrong later */
        void *userdata;
};

/* To be undone by shelves_done(), also when it fails. */
int shelves_init(Shelves *s, sd_event *event,
                 void (*failed)(void *userdata, int error, const char *what), void *userdata);
void shelves_done(Shelves *s);

/* One of each kind is there from the start, so that nobody waits for his to be made. */
int shelves_begin(Shelves *s, uint32_t generation);

/* As shelf_put(). */
int shelves_put(Shelves *s, ShelfKind kind, const ShelfLabel *labels, size_t n_labels,
                const int *fds, ShelfPart **ret);

/* It goes a few turns of the loop later, or with the next sweep. */
void shelves_drop(ShelfPart *part);
void shelves_sweep(Shelves *s, ShelfKind kind);

/* Gives systemd a copy of the descriptor (sd_notify(3), FDSTORE=1). -ENOTCONN: nobody takes it. */
int shelves_hand_in(const char *name, int fd);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Descriptors in the queue of a socket, one message for each object or part of one, each with a
 * label. While the socket is in systemd's descriptor store what is in its queue lives.
 *
 * A message in the middle of a queue cannot be taken out. So a shelf is swept: each message in turn
 * is looked at without being taken (MSG_PEEK), sent once more to the end if it is to stay, and
 * dropped. Whoever is killed in between leaves one of them twice, never none.
 */

#include <sys/queue.h>

#include "core/util.h"

typedef struct Shelf Shelf;
typedef struct ShelfLabel ShelfLabel;
typedef struct ShelfMessage ShelfMessage;

#define SHELF_MESSAGES_MAX 32u  /* what a sweep takes grows with it */
#define SHELF_FDS_MAX      253u /* in a message: SCM_MAX_FD of the kernel */

/* What a message is; written down, so it only ever grows. */
struct ShelfLabel {
        uint32_t kind;
        uint32_t version;
        uint64_t id;
        uint32_t first; /* which of the object's descriptors is the message's first */
        uint32_t n_fds;
};

/* Part of whatever else is known of a message. */
struct ShelfMessage {
        Shelf *shelf;
        ShelfLabel label;
        bool dead; /* to be dropped by the next sweep */
        TAILQ_ENTRY(ShelfMessage) queue;
        TAILQ_ENTRY(ShelfMessage) item; /* the owner's */
};

TAILQ_HEAD(ShelfMessages, ShelfMessage);

struct Shelf {
        int in, out; /* where messages are put, where they are read */
        uint64_t number;
        struct ShelfMessages messages; /* in the order of the queue */
        size_t n_messages, n_dead;
        void *owner; /* the list that it is in */
        LIST_ENTRY(Shelf) shelves;
};

int shelf_new(uint64_t number, Shelf **ret);
Shelf *shelf_free(Shelf *s); /* with the messages; what another process has of the socket stays */
DEFINE_CLEANUP(Shelf *, shelf_free)

static inline bool shelf_has_room(const Shelf *s) {
        return s->n_messages < SHELF_MESSAGES_MAX;
}

/* Copies of label->n_fds descriptors. -EAGAIN: no room; -ETOOMANYREFS: more are under way than
 * RLIMIT_NOFILE. */
int shelf_put(Shelf *s, const ShelfLabel *label, const int *fds, ShelfMessage **ret);

/* It goes with the next sweep. */
void shelf_drop(ShelfMessage *m);

/* Dead messages are dropped and freed. -EMFILE and the like: not all of them. */
int shelf_sweep(Shelf *s);

/* The messages of an earlier process's shelf; they stay there. f gets the descriptors for keeps. */
typedef int (*ShelfReader)(void *userdata, const ShelfLabel *label, int *fds);
int shelf_read(int out, ShelfReader f, void *userdata);

/* Drops whatever is in the queue. */
void shelf_drain(int out);

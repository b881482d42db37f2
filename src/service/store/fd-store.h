/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The shelves of one generation (shelf.h), handed in to systemd as they are needed; a part of
 * store.c.
 */

#include <systemd/sd-event.h>

#include "service/store/fd-queue.h"

typedef struct FdStore FdStore;
typedef struct FdQueueRow FdQueueRow;

/* What goes the same way is on the same shelves. */
typedef enum FdQueueKind {
        FD_QUEUE_SOON,
        FD_QUEUE_SCARCE,
        FD_QUEUE_BUNDLES, /* soon as well; but of a bundle whoever stays has to be sent anew */
        _FD_QUEUE_KIND_MAX,
} FdQueueKind;

/* All shelves of a kind. */
struct FdQueueRow {
        FdStore *shelves;
        LIST_HEAD(, FdQueue) list;
        bool dirty; /* something is dead */
        sd_event_source *sweep;
};

struct FdStore {
        uint32_t generation;
        uint64_t next; /* number */
        size_t n;
        FdQueueRow rows[_FD_QUEUE_KIND_MAX];
        void (*failed)(void *userdata, int error,
                       const char *what); /* told what goes wrong later */
        void *userdata;
};

/* To be undone by fd_store_done(), also when it fails. */
int fd_store_init(FdStore *s, sd_event *event,
                  void (*failed)(void *userdata, int error, const char *what), void *userdata);
void fd_store_done(FdStore *s);

/* One of each kind is there from the start, so that nobody waits for his to be made. */
int fd_store_begin(FdStore *s, uint32_t generation);

/* As fd_queue_put(). */
int fd_store_put(FdStore *s, FdQueueKind kind, const FdLabel *labels, size_t n_labels,
                 const int *fds, FdPart **ret);

/* It goes a few turns of the loop later, or with the next sweep. */
void fd_store_drop(FdPart *part);
void fd_store_sweep(FdStore *s, FdQueueKind kind);

/* Gives systemd a copy of the descriptor (sd_notify(3), FDSTORE=1). -ENOTCONN: nobody takes it. */
int fd_store_hand_in(const char *name, int fd);

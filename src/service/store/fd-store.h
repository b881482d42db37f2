/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What one generation of the store has in systemd's descriptor store (sd_notify(3), FDSTORE=1): its
 * state log and its descriptor queues (fd-queue.h), of which more are made as they are needed.
 */

#include <systemd/sd-event.h>

#include "service/store/fd-queue.h"

typedef struct FdStore FdStore;
typedef struct FdQueueSet FdQueueSet;

/* When dropped descriptors are closed. Each kind has queues of its own, so that a sweep of one does
 * not send the descriptors of the others again. */
typedef enum FdQueueKind {
        FD_QUEUE_SOON,    /* within milliseconds */
        FD_QUEUE_SCARCE,  /* likewise, or at once by fd_store_sweep() */
        FD_QUEUE_BUNDLES, /* messages that objects share: later, as the others' parts are resent */
        _FD_QUEUE_KIND_MAX,
} FdQueueKind;

/* All queues of a kind. */
struct FdQueueSet {
        FdStore *store;
        LIST_HEAD(, FdQueue) queues;
        bool dirty; /* has dead parts */
        sd_event_source *sweep;
};

struct FdStore {
        uint32_t generation;
        uint64_t next; /* number */
        size_t n;
        FdQueueSet sets[_FD_QUEUE_KIND_MAX];
        uint64_t limit;      /* RLIMIT_NOFILE */
        uint64_t slice_usec; /* of a sweep from the event loop */
        int trial_in, trial_out;
        void (*failed)(void *userdata, int error, const char *what); /* a sweep, on its own */
        void *userdata;
};

/* fd_store_done() undoes it, also when it fails. */
int fd_store_init(FdStore *s, sd_event *event,
                  void (*failed)(void *userdata, int error, const char *what), void *userdata);
void fd_store_done(FdStore *s);

/* Hands in the state log, which stays the caller's, and a first queue of each kind. -ENOTCONN:
 * there is no descriptor store. */
int fd_store_begin(FdStore *s, uint32_t generation, int log_fd);

/* As fd_queue_put(). -ETOOMANYREFS also where a sweep could not send it again. */
int fd_store_put(FdStore *s, FdQueueKind kind, const FdLabel *labels, size_t n_labels,
                 const int *fds, FdPart **ret);

/* Marks the part as dead, to be dropped by a sweep from the event loop or by fd_store_sweep(). */
void fd_store_drop(FdPart *part);
void fd_store_sweep(FdStore *s, FdQueueKind kind);

/* What an earlier run's descriptor is, by its name; false: not one of ours. */
bool fd_store_parse(const char *name, uint32_t *ret_generation, bool *ret_is_queue);

/* Takes all descriptors of that name out of systemd's store. */
void fd_store_remove(const char *name);

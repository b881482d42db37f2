/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A queue of descriptors: messages in the queue of a socket, with the descriptors of one object, of
 * a part of one, or of many, each part with a label that says whose it is. Descriptors in the queue
 * stay open while systemd's descriptor store has the socket.
 *
 * A message in the middle of a queue cannot be taken out. A sweep therefore goes through the
 * messages from the first one on: it looks at a message without receiving it (MSG_PEEK), sends what
 * is still wanted of it to the end of the queue, then drops it. A process that is killed in between
 * leaves a message there twice, and never loses one.
 */

#include <sys/queue.h>

#include "core/fd-message.h"

typedef struct FdQueue FdQueue;
typedef struct FdLabel FdLabel;
typedef struct FdMessage FdMessage;
typedef struct FdPart FdPart;

#define FD_QUEUE_MESSAGES_MAX 32u            /* a sweep takes time in proportion */
#define FD_QUEUE_ROOM_FDS     512u           /* likewise; the last message may exceed it */
#define FD_QUEUE_FDS_MAX      FD_MESSAGE_MAX /* in a message */

/* What one part of a message is. The bytes of a message are those of its labels, in the order of
 * the descriptors. A later run reads them: never change the layout. */
struct FdLabel {
        uint32_t kind; /* StoreKind */
        uint32_t version;
        uint64_t id;
        uint32_t first; /* which of the object's descriptors is the part's first */
        uint32_t n_fds; /* at least one */
};

/* One object's part of a message. */
struct FdPart {
        FdMessage *message;
        FdLabel label;
        bool dead;                 /* to be dropped by the next sweep */
        TAILQ_ENTRY(FdPart) parts; /* the message's */
        TAILQ_ENTRY(FdPart) item;  /* the owner's */
};

TAILQ_HEAD(FdParts, FdPart);

struct FdMessage {
        FdQueue *queue;
        struct FdParts parts; /* in the order of the labels */
        size_t n_parts, n_dead;
        size_t n_fds;
        TAILQ_ENTRY(FdMessage) messages;
};

TAILQ_HEAD(FdMessages, FdMessage);

struct FdQueue {
        int in, out; /* the ends that are written to and read from */
        uint64_t number;
        struct FdMessages messages; /* in the order of the queue */
        size_t n_messages;
        size_t n_dead; /* parts */
        size_t n_fds;
        void *owner; /* the list that it is in */
        LIST_ENTRY(FdQueue) queues;
};

size_t fd_labels_n_fds(const FdLabel *labels, size_t n);

int fd_queue_new(uint64_t number, FdQueue **ret);

/* Closes our ends; the messages stay while systemd has a copy of the socket. Returns NULL. */
FdQueue *fd_queue_free(FdQueue *q);
DEFINE_CLEANUP(FdQueue *, fd_queue_free)

static inline bool fd_queue_has_room(const FdQueue *q) {
        return q->n_messages < FD_QUEUE_MESSAGES_MAX && q->n_fds < FD_QUEUE_ROOM_FDS;
}

/* Sends copies of the descriptors of all labels, at most FD_QUEUE_FDS_MAX, as one message; ret gets
 * a part for each label. -EAGAIN: no room. -ETOOMANYREFS: descriptors in flight exceed
 * RLIMIT_NOFILE (unix(7)). */
int fd_queue_put(FdQueue *q, const FdLabel *labels, size_t n_labels, const int *fds, FdPart **ret);

/* Marks the part as dead. */
void fd_queue_drop(FdPart *part);

/* Drops and frees dead parts, of one message at least, until then (CLOCK_MONOTONIC); q->n_dead
 * tells whether some are left. On failure (-EMFILE, ...) some are. */
int fd_queue_sweep(FdQueue *q, uint64_t until_usec);

/* Calls f for each part that is in an earlier run's queue, which stays as it is. f owns the
 * descriptors that it gets. */
typedef int (*FdQueueVisit)(void *userdata, const FdLabel *label, int *fds);
int fd_queue_read(int out, FdQueueVisit f, void *userdata);

/* Drops all messages. */
void fd_queue_drain(int out);

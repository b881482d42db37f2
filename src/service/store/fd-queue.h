/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Descriptors in the queue of a socket. A message has those of one object, of part of one, or of
 * many that came together, each with a label. While the socket is in systemd's descriptor store
 * what is in its queue lives.
 *
 * A message in the middle of a queue cannot be taken out. So a shelf is swept: each message in turn
 * is looked at without being taken (MSG_PEEK), what is to stay of it is sent once more to the end,
 * and it is dropped. Whoever is killed in between leaves something twice, never not at all.
 */

#include <sys/queue.h>

#include "core/util.h"

typedef struct FdQueue FdQueue;
typedef struct FdLabel FdLabel;
typedef struct FdMessage FdMessage;
typedef struct FdPart FdPart;

#define FD_QUEUE_MESSAGES_MAX 32u  /* what a sweep takes grows with it */
#define FD_QUEUE_ROOM_FDS     512u /* likewise; the last message may exceed it */
#define FD_QUEUE_FDS_MAX      253u /* in a message: SCM_MAX_FD of the kernel */

/* What one part of a message is. The bytes of a message are those of its labels, in the order of
 * the descriptors: written down, so never change it. */
struct FdLabel {
        uint32_t kind;
        uint32_t version;
        uint64_t id;
        uint32_t first; /* which of the object's descriptors is the part's first */
        uint32_t n_fds; /* at least one */
};

/* One object's part of a message. */
struct FdPart {
        FdMessage *message;
        FdLabel label;
        bool dead;                /* to be dropped by the next sweep */
        TAILQ_ENTRY(FdPart) part; /* the message's */
        TAILQ_ENTRY(FdPart) item; /* the owner's */
};

TAILQ_HEAD(FdParts, FdPart);

struct FdMessage {
        FdQueue *shelf;
        struct FdParts parts; /* in the order of the labels */
        size_t n_parts, n_dead;
        size_t n_fds;
        TAILQ_ENTRY(FdMessage) queue;
};

TAILQ_HEAD(FdMessages, FdMessage);

struct FdQueue {
        int in, out; /* where messages are put, where they are read */
        uint64_t number;
        struct FdMessages messages; /* in the order of the queue */
        size_t n_messages;
        size_t n_dead; /* parts */
        size_t n_fds;
        void *owner; /* the list that it is in */
        LIST_ENTRY(FdQueue) shelves;
};

int fd_queue_new(uint64_t number, FdQueue **ret);
FdQueue *fd_queue_free(
        FdQueue *s); /* with the messages; what another process has of the socket stays */
DEFINE_CLEANUP(FdQueue *, fd_queue_free)

static inline bool fd_queue_has_room(const FdQueue *s) {
        return s->n_messages < FD_QUEUE_MESSAGES_MAX && s->n_fds < FD_QUEUE_ROOM_FDS;
}

/* Copies of the descriptors of all labels, FD_QUEUE_FDS_MAX at most, go into one message; ret gets
 * a part for each label. -EAGAIN: no room; -ETOOMANYREFS: more are under way than RLIMIT_NOFILE. */
int fd_queue_put(FdQueue *s, const FdLabel *labels, size_t n_labels, const int *fds, FdPart **ret);

/* It goes with the next sweep. */
void fd_queue_drop(FdPart *part);

/* Dead parts are dropped and freed. -EMFILE and the like: not all of them. */
int fd_queue_sweep(FdQueue *s);

/* What is on an earlier process's shelf, part by part; it stays there. f gets the descriptors for
 * keeps. */
typedef int (*FdQueueReader)(void *userdata, const FdLabel *label, int *fds);
int fd_queue_read(int out, FdQueueReader f, void *userdata);

/* Drops whatever is in the queue. */
void fd_queue_drain(int out);

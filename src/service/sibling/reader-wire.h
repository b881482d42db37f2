/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The messages between the service and its helper. Both are one program, so messages are structs;
 * what has another size is dropped, with its descriptors.
 */

#include <sys/types.h>

#include "perf/process/process.h"
#include "perf/process/seize.h"

typedef struct ReaderRequest ReaderRequest;
typedef struct ReaderReply ReaderReply;
typedef struct ReaderShared ReaderShared;

#define READER_GIDS_MAX     1024u
#define READER_INSPECTS_MAX 32u /* so many are with the helper at a time */
#define READER_SCANS_MAX    1u
#define READER_SEIZES_MAX   4u

typedef enum ReaderOp {
        READER_INSPECT, /* descriptors: pidfd */
        READER_SCAN,
        READER_SEIZE, /* pidfd, and the end of a pipe that hangs up to let go */
        _READER_OP_MAX,
} ReaderOp;

struct ReaderRequest {
        uint64_t id;
        uint32_t op;
        uint32_t any; /* SeizeRule */
        uint32_t uid;
        uint32_t n_gids;
        uint64_t bound_usec;
        gid_t gids[];
};

#define READER_REQUEST_SIZE(n_gids) (offsetof(ReaderRequest, gids) + (n_gids) * sizeof(gid_t))

typedef union ReaderRequestBuffer {
        ReaderRequest q;
        char bytes[READER_REQUEST_SIZE(READER_GIDS_MAX)];
} ReaderRequestBuffer;

/* Every request gets one reply that answers and one that ends; that may be the same. What ends
 * without an answer has failed. */
struct ReaderReply {
        uint64_t id;
        uint32_t op;
        bool answers;
        bool ends;
        bool complete; /* READER_SCAN */
        int32_t r;
        ProcessFacts facts; /* READER_INSPECT */
        Refusal why;
        /* Descriptor: READER_SCAN a file with an array of User; READER_SEIZE one with ReaderShared,
         * processes and threads. */
};

/* Which of the two ends a standing tree first is settled in this word, which both have mapped. */
enum {
        READER_TREE_STANDS,
        READER_TREE_RELEASED, /* by the service */
        READER_TREE_EXPIRED,  /* by the helper, before it lets go */
};

struct ReaderShared {
        _Atomic uint32_t state;
        uint32_t reserved;
        uint64_t n_processes;
        uint64_t n_threads;
};

/* 0 or -errno; a request never waits, a reply does. The first descriptor that is -1 ends the list.
 */
int reader_request_send(int socket, const ReaderRequest *q, const int fds[2]);
int reader_reply_send(int socket, const ReaderReply *a, int fd);

/* 1: one is there, with descriptors or -1, which the caller closes. 0: the other end has gone.
 * -EMFILE: one is there, but there was no room for its descriptors. -EBADMSG: what came was no
 * message. -EAGAIN: nothing is there (also where the socket would wait). */
int reader_request_receive(int socket, ReaderRequestBuffer *ret, int ret_fds[2]);
int reader_reply_receive(int socket, ReaderReply *ret, int *ret_fd);

/* Maps the file of an answer; an empty one is NULL. -EBADMSG where there is none. */
int reader_file_map(int fd, void **ret, size_t *ret_size);

/* What is in it; -EBADMSG when it does not fit its size. */
int reader_shared_find(const ReaderShared *s, size_t size, const ProcessFacts **ret_processes,
                       size_t *ret_n_processes, const SeizedThread **ret_threads,
                       size_t *ret_n_threads);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The messages between the service and its helper. Both are one program, so messages are structs;
 * what has another size is dropped, with its descriptors.
 */

#include <sys/types.h>

#include "perf/process.h"
#include "perf/seize.h"

typedef struct HelperRequest HelperRequest;
typedef struct HelperReply HelperReply;
typedef struct HelperShared HelperShared;

#define HELPER_GIDS_MAX     1024u
#define HELPER_INSPECTS_MAX 32u /* so many are with the helper at a time */
#define HELPER_SCANS_MAX    1u
#define HELPER_SEIZES_MAX   4u

typedef enum HelperOp {
        HELPER_INSPECT, /* descriptors: pidfd */
        HELPER_SCAN,
        HELPER_SEIZE, /* pidfd, and the end of a pipe that hangs up to let go */
        _HELPER_OP_MAX,
} HelperOp;

struct HelperRequest {
        uint64_t id;
        uint32_t op;
        uint32_t any; /* SeizeRule */
        uint32_t uid;
        uint32_t n_gids;
        uint64_t bound_usec;
        gid_t gids[];
};

#define HELPER_REQUEST_SIZE(n_gids) (offsetof(HelperRequest, gids) + (n_gids) * sizeof(gid_t))

typedef union HelperRequestBuffer {
        HelperRequest q;
        char bytes[HELPER_REQUEST_SIZE(HELPER_GIDS_MAX)];
} HelperRequestBuffer;

/* Every request gets one reply that answers and one that ends; that may be the same. What ends
 * without an answer has failed. */
struct HelperReply {
        uint64_t id;
        uint32_t op;
        bool answers;
        bool ends;
        bool complete; /* HELPER_SCAN */
        int32_t r;
        ProcessFacts facts; /* HELPER_INSPECT */
        Refusal why;
        /* Descriptor: HELPER_SCAN a file with an array of User; HELPER_SEIZE one with HelperShared,
         * processes and threads. */
};

/* Which of the two ends a standing tree first is settled in this word, which both have mapped. */
enum {
        HELPER_TREE_STANDS,
        HELPER_TREE_RELEASED, /* by the service */
        HELPER_TREE_EXPIRED,  /* by the helper, before it lets go */
};

struct HelperShared {
        _Atomic uint32_t state;
        uint32_t reserved;
        uint64_t n_processes;
        uint64_t n_threads;
};

/* 0 or -errno; a request never waits, a reply does. The first descriptor that is -1 ends the list.
 */
int helper_request_send(int socket, const HelperRequest *q, const int fds[2]);
int helper_reply_send(int socket, const HelperReply *a, int fd);

/* 1: one is there, with descriptors or -1, which the caller closes. 0: the other end has gone.
 * -EMFILE: one is there, but there was no room for its descriptors. -EBADMSG: what came was no
 * message. -EAGAIN: nothing is there (also where the socket would wait). */
int helper_request_receive(int socket, HelperRequestBuffer *ret, int ret_fds[2]);
int helper_reply_receive(int socket, HelperReply *ret, int *ret_fd);

/* Maps the file of an answer; an empty one is NULL. -EBADMSG where there is none. */
int helper_file_map(int fd, void **ret, size_t *ret_size);

/* What is in it; -EBADMSG when it does not fit its size. */
int helper_shared_find(const HelperShared *s, size_t size, const ProcessFacts **ret_processes,
                       size_t *ret_n_processes, const SeizedThread **ret_threads,
                       size_t *ret_n_threads);

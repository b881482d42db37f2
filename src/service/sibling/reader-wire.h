/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The messages between the service and the reader. Both are one program, so messages are structs; a
 * message of another size is dropped, with its descriptors.
 */

#include <sys/types.h>

#include "perf/process/process.h"
#include "perf/process/seize.h"

typedef struct ReaderRequest ReaderRequest;
typedef struct ReaderReply ReaderReply;
typedef struct ReaderShared ReaderShared;

#define READER_GIDS_MAX     1024u
#define READER_INSPECTS_MAX 32u /* that the reader works on at a time */
#define READER_PROVES_MAX   32u
#define READER_SCANS_MAX    1u
#define READER_SEIZES_MAX   4u
#define READER_BROKERS_MAX  512u
#define READER_PINGS_MAX    1u
#define READER_REQUESTS_MAX                                                                        \
        (READER_INSPECTS_MAX + READER_PROVES_MAX + READER_SCANS_MAX + READER_SEIZES_MAX +          \
         READER_BROKERS_MAX + READER_PINGS_MAX)

typedef enum ReaderOp {
        READER_INSPECT, /* descriptors: pidfd, and that of the process that asks */
        READER_PROVE,   /* the proof, and a pidfd */
        READER_SCAN,
        READER_SEIZE,  /* pidfd, and the read end of a pipe that hangs up to let go */
        READER_BROKER, /* those of worker_run(); ends without an answer */
        READER_PING,   /* answered at once */
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

/* Every request gets one reply that answers and one that ends, which may be the same message. A
 * request that ends without an answer has failed. */
struct ReaderReply {
        uint64_t id;
        uint32_t op;
        bool answers;
        bool ends;
        bool complete; /* READER_SCAN */
        int32_t r;
        ProcessFacts facts; /* READER_INSPECT */
        bool neighbour;     /* likewise */
        Refusal why;
        /* Descriptor: for READER_PROVE a pidfd, for READER_SCAN a file with an array of User, for
         * READER_SEIZE one with ReaderShared, processes and threads. */
};

/* ReaderShared.state, which both have mapped: the first of them to change it ends the seizure. */
enum {
        READER_TREE_STANDS,   /* stopped */
        READER_TREE_RELEASED, /* by the service */
        READER_TREE_EXPIRED,  /* by the reader, before it lets go */
};

struct ReaderShared {
        _Atomic uint32_t state;
        uint32_t reserved;
        uint64_t n_processes;
        uint64_t n_threads;
};

/* A request is sent without waiting, a reply waits for room. The first -1 in fds ends the list. */
int reader_request_send(int socket, const ReaderRequest *q, const int fds[2]);
int reader_reply_send(int socket, const ReaderReply *a, int fd);

/* 1: received; the caller closes the descriptors, -1 where there is none. 0: the other end is
 * closed. -EMFILE: received, but its descriptors did not fit. -EBADMSG: not a message of ours.
 * -EAGAIN: there is none (also where the socket would wait). */
int reader_request_receive(int socket, ReaderRequestBuffer *ret, int ret_fds[2]);
int reader_reply_receive(int socket, ReaderReply *ret, int *ret_fd);

/* Maps the file of a reply; NULL for an empty one. -EBADMSG: no file. */
int reader_file_map(int fd, void **ret, size_t *ret_size);

/* Finds both arrays in it. -EBADMSG: they do not fit its size. */
int reader_shared_find(const ReaderShared *s, size_t size, const ProcessFacts **ret_processes,
                       size_t *ret_n_processes, const SeizedThread **ret_threads,
                       size_t *ret_n_threads);

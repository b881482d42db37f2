/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The messages between the service and the opener: a request is an array of OpenerItem, its reply
 * an OpenerReply; or a request is OpenerLanes, and its reply an int32_t. Both are one program, so
 * messages are structs.
 */

#include "perf/pmu/kernel.h"
#include "perf/pmu/perf-open.h"
#include "service/sibling/wire.h"

typedef struct OpenerItem OpenerItem;
typedef struct OpenerLanes OpenerLanes;
typedef struct OpenerReply OpenerReply;
typedef struct OpenerRequest OpenerRequest;

/* PerfOpen, whose descriptors are places in the message's, or -1. */
struct OpenerItem {
        Attr attr;
        int32_t pid;
        int32_t cpu;
        int32_t leader; /* place in the same message, or -1 */
        int32_t process;
        int16_t group, pidfd, cgroup;
        uint8_t allowed;
        uint8_t enables_first;
        uint64_t flags;
};

_Static_assert(PERF_OPEN_ALLOW_ALL <= UINT8_MAX, "OpenerItem.allowed");
_Static_assert(KERNEL_OPEN_MAX <= FD_MESSAGE_MAX, "the first of a call is in the same message");

struct OpenerRequest {
        size_t n, n_fds;
        int fds[FD_MESSAGE_MAX];
        OpenerItem items[FD_MESSAGE_MAX];
};

/* A descriptor for each result of 0, in their order. */
struct OpenerReply {
        uint32_t size; /* of the kernel's attr, if a result is -E2BIG */
        uint32_t from; /* the CPU that they were opened from */
        int32_t results[FD_MESSAGE_MAX];
};

/* Comes with sockets: each is served by a thread of its own, on these CPUs only, as this one is.
 * Without any, all these threads may run on any CPU from now on. The reply is how many threads were
 * started: those of the first sockets. */
struct OpenerLanes {
        uint64_t cpus[CPUSET_CPUS_MAX / 64]; /* as the kernel takes them, sched_setaffinity(2) */
};

_Static_assert(sizeof(OpenerLanes) % sizeof(OpenerItem) != 0, "the size of a request tells which");

#define OPENER_REPLY_SIZE(n) (offsetof(OpenerReply, results) + (n) * sizeof(int32_t))

/* Puts as many as fit into one message, at least one; returns how many. Leaders of earlier messages
 * have their descriptors in opens. */
size_t opener_request_pack(OpenerRequest *q, const PerfOpen *opens, size_t first, size_t n);

/* What perf_open_here() takes; descriptors are those of the request. -EBADMSG: the items name
 * descriptors or leaders that are not there. */
int opener_request_unpack(const OpenerRequest *q, PerfOpen *ret);

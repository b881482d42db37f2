/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The messages between the service and a broker's worker, over SOCK_SEQPACKET. Both are one
 * program, so messages are structs. The worker asks, one question at a time, and the service
 * answers.
 */

#include "broker/other.h"

typedef struct BrokerRequest BrokerRequest;
typedef struct BrokerReply BrokerReply;

/* What the event is to count. */
typedef enum BrokerTarget {
        BROKER_TASK,   /* a thread of the task's own process; descriptor: a pidfd of that */
        BROKER_CPU,    /* everybody on a CPU */
        BROKER_CGROUP, /* descriptor: its directory */
        BROKER_OTHER,  /* a thread of another process; descriptor: a pidfd of that */
        BROKER_NOBODY, /* there is no such task, or cgroup */
        _BROKER_TARGET_MAX,
} BrokerTarget;

/* With up to two descriptors: of the target, and of the group. */
struct BrokerRequest {
        TaskFacts task;
        uint32_t target;
        OtherFacts other; /* of BROKER_OTHER */
        int32_t tid;      /* of BROKER_TASK and BROKER_OTHER */
        int32_t cpu;
        uint32_t in_group; /* bool: the last descriptor is the group's */
        uint64_t flags;    /* as in the call */
        unsigned char attr[ATTR_SIZE_MAX];
};

#define BROKER_REQUEST_SIZE(n_attr) (offsetof(BrokerRequest, attr) + (n_attr))
#define BROKER_REQUEST_FDS          2u

typedef enum BrokerAnswer {
        BROKER_FAIL, /* with error */
        BROKER_PASS, /* the kernel's own answer to the task is the right one */
        BROKER_GIVE, /* the descriptor of the message: an event, disabled */
        _BROKER_ANSWER_MAX,
} BrokerAnswer;

struct BrokerReply {
        uint32_t answer;
        int32_t error;     /* errno */
        uint32_t size;     /* with E2BIG: the size that the kernel expects */
        uint32_t start;    /* bool: enable it */
        uint32_t redirect; /* bool: its output goes to the group's leader */
        uint32_t recheck;  /* bool: not if BROKER_OTHER has changed */
};

/* The first message goes to the worker: the descriptors of the listener, of its page, and of who
 * proves (prover.h), -1: nobody does. */
int broker_wire_begin(int socket, int listener, int page, int prover);
int broker_wire_await(int socket, int *ret_listener, int *ret_page, int *ret_prover);

/* 0: the other end is closed. -EBADMSG: not a message of ours. -EAGAIN (service): there is none.
 * Descriptors that did not come are -1. */
int broker_request_send(int socket, const BrokerRequest *q, size_t n_attr, int target, int group);
int broker_request_receive(int socket, BrokerRequest *ret, size_t *ret_n_attr, int *ret_target,
                           int *ret_group);
int broker_reply_send(int socket, const BrokerReply *a, int fd);
int broker_reply_receive(int socket, BrokerReply *ret, int *ret_fd);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Makes calls of the service's own code fail, at run time and from outside.
 *
 * perfallocd-fault is perfallocd, linked (ld's --wrap) so that each call that may fail for lack of
 * memory or descriptors goes through here. This covers calls from the service's own objects, not
 * those between libraries: a library that is out of memory is imitated by failing its own function.
 * Sanitizers work with it.
 *
 * A test creates FAULT_FILE and starts the service; both map it. Without the file nothing fails.
 */

#include <stdatomic.h>
#include <stdint.h>

typedef struct Fault Fault;

#define FAULT_FILE "/run/rig/fault"

/* Bits, because a fault may be in any of several kinds. */
typedef enum FaultKind {
        FAULT_MEMORY = 1 << 0,  /* malloc(3) and who calls it: ENOMEM, whatever error is */
        FAULT_PERF = 1 << 1,    /* perf_event_open(2), pidfd_open(2), pidfd_getfd(2) */
        FAULT_SYSTEM = 1 << 2,  /* open, pipe, socketpair, dup, memfd, timerfd, mmap, fork, ... */
        FAULT_BUS = 1 << 3,     /* libsystemd: ENOMEM, whatever error is */
        FAULT_PASSING = 1 << 4, /* recvmsg(2): descriptors are lost, MSG_CTRUNC */
} FaultKind;

typedef enum FaultWhere {
        FAULT_SERVICE = 1 << 0,  /* the process on the bus */
        FAULT_SIBLINGS = 1 << 1, /* opener, reader and the reader's children */
} FaultWhere;

struct Fault {
        /* written by the test while nothing is armed */
        uint32_t kinds, where;
        int32_t error;
        uint32_t lasting; /* from then on every call fails */

        /* How many calls until one fails, 1: the next one; 0: none does. */
        _Atomic int64_t left;

        _Atomic int64_t realtime_usec; /* how far its CLOCK_REALTIME is off the machine's */

        /* written by the service */
        _Atomic uint32_t struck; /* how many have failed */
        uint64_t caller;         /* of the last of them, as an address for addr2line */
};

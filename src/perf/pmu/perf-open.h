/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * perf_event_open(2), for all who open events: by this process, or by another one that has the
 * capabilities for it (service/sibling/opener.h).
 *
 * What belongs together is opened by one call, as each may be a message to that process and back.
 */

#include <sys/types.h>

#include "core/attr-rules.h"
#include "core/cpuset.h"

typedef struct PerfOpen PerfOpen;

#define PERF_OPEN_NO_LEADER SIZE_MAX
#define PERF_OPEN_ALLOW_ALL ((1u << _ATTR_NEED_MAX) - 1)

/* One event to be opened. Descriptors are borrowed. */
struct PerfOpen {
        Attr attr;
        pid_t pid; /* as perf_event_open(2) has it; 0 is whichever process opens it, */
        int cpu;
        size_t leader;      /* the place of its group's leader in the same call, */
        int group;          /* or else the leader's descriptor; -1: none */
        bool enables_first; /* the first of the same message is enabled just before */
        unsigned long flags;
        unsigned allowed; /* 1 << AttrNeed, ...: what was authorized */

        /* The process that pid is a thread of: after the opening it still has to be. -1: any. */
        int pidfd;
        pid_t process;

        int fd;        /* result: the event, close-on-exec, or -errno */
        uint32_t size; /* result of -E2BIG: the size of the kernel's attr */
        unsigned from; /* result: the CPU that it was opened from, whose tasks did not run */
};

#define PERF_OPEN_NULL                                                                             \
        ((PerfOpen){ .pid = -1,                                                                    \
                     .cpu = -1,                                                                    \
                     .leader = PERF_OPEN_NO_LEADER,                                                \
                     .group = -1,                                                                  \
                     .allowed = PERF_OPEN_ALLOW_ALL,                                               \
                     .pidfd = -1,                                                                  \
                     .fd = -1 })

/* PERF_OPEN_NULL with an attr of its own size, the part of it that this header knows. */
void perf_open_init(PerfOpen *ret, const struct perf_event_attr *attr);

/* Opens them in their order, up to the first failure other than -ESRCH. The others after it, and
 * those whose leader failed, get -ECANCELED. */
void perf_open_all(PerfOpen *opens, size_t n);

/* A single one: the descriptor or -errno. */
int perf_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group,
              unsigned long flags);

/* The same by this process, whatever perf_open_set() was told. */
void perf_open_here(PerfOpen *opens, size_t n);

/* Another process that opens events. Threads of this one that work side by side (core/team.h) have
 * lanes of their own to it: what one asks for is not held up by what another one does. */
typedef struct PerfOpener PerfOpener;

struct PerfOpener {
        void (*open)(void *userdata, PerfOpen *opens, size_t n); /* by the lane of this thread */
        int (*add_lanes)(void *userdata, unsigned n, const CpuSet *cpus);
        void (*let_go)(void *userdata);
        void *userdata;
};

/* From now on it opens everything; NULL: this process does. */
void perf_open_set(const PerfOpener *o);

/* Adds the next n lanes (the first ones are 1, 2, ...). Their events are opened from these CPUs.
 * 0, -ENOMEM, -EMFILE, -EAGAIN: they cannot be had. */
int perf_open_add_lanes(unsigned n, const CpuSet *cpus);

/* Lanes may be on any CPU from now on: those that they were given do not serve them. */
void perf_open_let_go(void);

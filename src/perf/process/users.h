/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Processes that have perf events open: with descriptors, or with a mapped ring buffer alone, which
 * keeps its event open. What they count, and on which CPUs, cannot be seen from outside; nor can
 * events of the kernel itself, and descriptors that only one thread has (CLONE_FILES undone).
 *
 * How old an event is can be asked of a copy of its descriptor alone, which lives for that moment.
 *
 * Other users' processes need CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH; without, they are left out. A
 * process can make a reader of its memory map wait, so a scan is done in a separate process that
 * can be killed (service/sibling/reader.h).
 */

#include <sys/types.h>

#include "core/util.h"

typedef struct User User;

#define USERS_MAX 16384u /* more are not looked for */

/* Plain data: sent over a socket as it is. */
struct User {
        pid_t pid;
        uid_t uid;              /* effective */
        uint32_t n_descriptors; /* 0: mapped only */
        uint64_t oldest;        /* of these events, by its order (perf/pmu/event-order.h); 0: it
                                 * cannot be told */
        char command[16];       /* without arguments; printable ASCII */
        char unit[256];         /* systemd's innermost unit, or ""; printable ASCII */
};

/* Calls found for each but those in skip: first those with descriptors, by ascending pid, then
 * those with mappings alone. A negative return ends the scan and is returned. 0, -ENOMEM, or why
 * /proc cannot be read. */
int users_scan(const pid_t *skip, size_t n_skip, int (*found)(void *userdata, const User *user),
               void *userdata);

/* The unit in a text of /proc/PID/cgroup. */
void user_unit(const char *cgroup, char *ret, size_t size);

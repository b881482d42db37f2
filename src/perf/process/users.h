/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who has perf events open: every process with descriptors of events, and those that have closed
 * them but keep a ring buffer mapped (which keeps the event). On which CPUs, and what is counted,
 * cannot be seen from outside; events of the kernel's own cannot be seen at all. Descriptors that
 * only one thread has (CLONE_FILES undone) are not seen.
 *
 * To see other users' processes takes CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH; without, they are
 * left out. A process can make us wait for its memory map, so a scan belongs into a process of its
 * own that can be killed (service/sibling/reader.h).
 */

#include <sys/types.h>

#include "core/util.h"

typedef struct User User;

#define USERS_MAX 16384u /* more are not looked for */

/* Plain data: it travels over a socket as it is. */
struct User {
        pid_t pid;
        uid_t uid;              /* effective */
        uint32_t n_descriptors; /* 0: mapped only */
        char command[16];       /* as ps shows it without arguments; printable ASCII */
        char unit[256]; /* systemd's innermost unit, "" where there is none; printable ASCII */
};

/* Calls found for each, those with descriptors first and by ascending pid, then those that have
 * mappings alone; a negative answer ends the scan and is its result. Processes may come and go
 * meanwhile. Those in skip are left out. 0, -ENOMEM, or why /proc cannot be read. */
int users_scan(const pid_t *skip, size_t n_skip, int (*found)(void *userdata, const User *user),
               void *userdata);

/* The unit that a text of /proc/PID/cgroup tells of. */
void user_unit(const char *cgroup, char *ret, size_t size);

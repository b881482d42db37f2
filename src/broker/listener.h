/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A seccomp listener (seccomp_unotify(2)): it tells of system calls that wait for an answer. Its
 * filter is the client's, so nothing is known of what it forwards.
 *
 * A notification is written to memory that outlives the process that receives it: it would never be
 * told again, and its task would wait for ever. Whoever goes on finds it there.
 */

#include <linux/seccomp.h>

#include "core/util.h"

typedef struct ListenerPage ListenerPage;

/* Shared memory, all zero at first. */
struct ListenerPage {
        struct seccomp_notif call; /* that waits for an answer; its id is 0: none */
        uint32_t sandboxed;        /* bool: a task has entered a Landlock domain */
};

/* Whether the descriptor is a listener. Asks nothing of what is behind it. */
bool listener_is(int fd);

/* Whether both descriptors are the same listener. False where the kernel has no kcmp(2). */
bool listener_is_same(int a, int b);

/* A memfd with an empty page. -errno. */
int listener_page_new(int *ret_fd);
int listener_page_map(int fd, ListenerPage **ret);

/* Waits for the next call, and writes it to the page, which must have none. 0; -ENOENT: its task
 * has died; -EINTR. */
int listener_receive(int fd, ListenerPage *page);

/* Whether no task has the filter any more. */
bool listener_has_ended(int fd);

/* Whether the call still waits: so its task exists, and its number has not been reused. */
bool listener_awaits(int fd, uint64_t id);

/* ---- the answers; a task that has died since is no error ---- */

/* The call fails with this errno. */
void listener_fail(int fd, uint64_t id, int error);

/* The kernel executes the call as if there were no filter, with the task's own rights. */
void listener_let_pass(int fd, uint64_t id);

/* The call returns a copy of the descriptor event, in the task's table. A full table is the call's
 * EMFILE. */
void listener_give(int fd, uint64_t id, int event, bool close_on_exec);

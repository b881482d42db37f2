/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests of AttachProcess: processes to attach, and calls about them.
 */

#include "writer.h"

/* Options of a counter that has no target yet. */
#define UNATTACHED "a{sv}", 2, "attach", "b", false, "start", "b", false

/* A process with a child: for writer_write() both of them write. */
Actor *parent_new(const char *user, pid_t *ret_child);

/* Starts as many threads as it is told (int); sends 'r' when they run. */
int play_threads(int fd, const void *data);

void attach(Client *c, const char *counter, pid_t pid);
void attach_tree(Client *c, const char *counter, pid_t pid);
void detach(Client *c, const char *counter, pid_t pid);
void attach_refused(Client *c, const char *error, const char *counter, uint32_t pid);

/* Counts writes to watched[0]. */
char *unattached_open(Client *c);

/* n pids, in this order. */
void assert_targets(Client *c, const char *counter, unsigned n, ...);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A separate process, for tests that are about processes: that are killed, are counted, or have no
 * privileges.
 */

/* before GLib, which has MIN and MAX of its own */
#include "core/util.h"

#include <glib.h>
#include <sys/types.h>

typedef struct Actor Actor;

struct Actor {
        pid_t pid;
        int fd; /* to the actor */
};

/* Runs play() as the user, in a process without any of our descriptors; its return value is the
 * exit status. There, fd is the other end. */
Actor *actor_new(const char *user, int (*play)(int fd, const void *data), const void *data);
char actor_hear(Actor *a);            /* waits for one byte from it */
void actor_tell(Actor *a, char what); /* sends one */
int actor_join(Actor *a);             /* closes our end and waits; returns the exit status */
void actor_free(Actor *a);            /* kills it */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Actor, actor_free)

/* The actor's side. */
void act_say(int fd, char what);
char act_hear(int fd); /* 0: the other end is closed */

/* Whether its first thread sleeps: it is not on a CPU, and its events count nothing. */
bool process_is_asleep(pid_t pid);

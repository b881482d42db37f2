/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * COMMAND: a child that runs while the counters are held. It has perfalloc's process group and
 * terminal, the signal mask that perfalloc was started with, and none of its descriptors.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "client/signals.h"

typedef struct Command Command;

/* As env(1), nohup(1) and the shell have it. */
#define COMMAND_CANNOT_RUN 126
#define COMMAND_NOT_FOUND  127

struct Command {
        pid_t pid;
        bool ended;
        int status; /* its exit status, where it exited */
        int signo;  /* what killed it, else 0 */
};

#define COMMAND_NULL ((Command){})

/* Negative errno: it was not started, because there was no memory, process or descriptor for it.
 * Positive: the exec failed, with this errno; ended and status are set. From 0 on signals that are
 * sent to this process are handed on. */
int command_start(Command *c, char **argv, sd_event *event, Signals *signals);

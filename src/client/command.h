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
        int gate;   /* it waits at the other end until it may run */
        int report; /* what became of its exec */
        bool ended;
        int status; /* its exit status, where it exited */
        int signo;  /* what killed it, else 0 */
};

#define COMMAND_NULL ((Command){ .gate = -1, .report = -1 })

/* It has its pid, and waits to be run. Negative errno: there was no memory, process or descriptor
 * for it. */
int command_prepare(Command *c, char **argv, const Signals *signals);

/* It runs; once only. Negative errno: it does not. Positive: the exec failed, with this errno;
 * ended and status are set. From 0 on signals that are sent to this process are handed on. */
int command_run(Command *c, sd_event *event, Signals *signals);

/* Ends what was prepared and never run, and leaves what runs alone. */
void command_done(Command *c);

/* command_prepare and command_run in one. */
int command_start(Command *c, char **argv, sd_event *event, Signals *signals);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * COMMAND: a child that runs while the counters are held. It has perfalloc's process group and
 * terminal, the signal mask that perfalloc was started with, and none of its descriptors.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "client/filter.h"
#include "client/signals.h"

typedef struct Command Command;
typedef struct CommandSetting CommandSetting;

/* As in env(1), nohup(1) and the shell. */
#define COMMAND_CANNOT_RUN 126
#define COMMAND_NOT_FOUND  127

struct Command {
        pid_t pid;
        int gate;   /* the child waits at the other end until it may run */
        int report; /* a socket: what became of the setting; the errno of a failed exec */
        bool ended;
        int status; /* its exit status, where it exited */
        int signo;  /* what killed it, else 0 */
};

/* What COMMAND is started with. */
struct CommandSetting {
        const Filter *filter; /* or NULL */
        const char *paranoid; /* a level for paranoid_view_enter(), or NULL */
};

#define COMMAND_NULL ((Command){ .gate = -1, .report = -1 })

/* The child is created, and waits to be run. setting may be NULL. Negative errno: there was no
 * memory, process or descriptor for it. */
int command_prepare(Command *c, char **argv, const CommandSetting *setting, const Signals *signals);

/* What became of the setting that it was prepared with, once only. ret_listener: of the filter, or
 * a negative errno: there is none, and it waits without. ret_view: likewise, or 0. */
void command_take_setting(Command *c, int *ret_listener, int *ret_view);

/* Runs it, once only. Negative errno: it does not run. Positive: the exec failed with this errno,
 * and ended and status are set. After 0, signals that are sent to this process are forwarded to
 * it. */
int command_run(Command *c, sd_event *event, Signals *signals);

/* Ends a child that was prepared and never run. A running one is left alone. */
void command_done(Command *c);

/* command_prepare() and command_run() in one. */
int command_start(Command *c, char **argv, sd_event *event, Signals *signals);

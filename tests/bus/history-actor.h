/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Processes of a history that have events of their own, without the service: strangers, which come
 * and go by themselves while holds are measured, and holders' programs, which do as they are told.
 */

#include "actor.h"
#include "history-log.h"

typedef struct Order Order;

#define HISTORY_CGROUP "/sys/fs/cgroup/history" /* exists where cgroups are counted */

/* What its events are for. */
typedef enum OrderTarget {
        ORDER_CPU,
        ORDER_TASK,    /* the process itself, and breakpoints alone, which count in any task */
        ORDER_SLEEPER, /* a task that sleeps */
        ORDER_SPINNER, /* one that does not */
        ORDER_CGROUP,  /* a cgroup without tasks */
        _ORDER_TARGET_MAX,
} OrderTarget;

struct Order {
        char what; /* 'o': opens as follows; 'c': closes all; 't': tells what the kernel counts */
        OrderTarget target;
        unsigned cpu;
        unsigned n;
        bool cycles, pinned, group;
        uint64_t period;     /* samples; 0: none */
        uint64_t delay_usec; /* before it opens */
        uint64_t stay_usec;  /* then it closes; 0: when it is told to */
        uint64_t gap_usec;   /* until it opens again */
        unsigned times;
        bool answers; /* says when it is done */
};

/* Opens one event: the descriptor or -errno. leader -1: it leads. pid -1 and a CPU, or a task and
 * -1; a cgroup's directory is in pid where cgroup is true. */
typedef int (*OrderOpen)(const Order *o, pid_t pid, bool cgroup, int cpu, int leader);

/* What all that are forked afterwards use. */
void history_actors_init(TakeLog *log, OrderOpen open);

Actor *history_actor_new(const char *user);
void history_actor_order(Actor *a, const Order *o); /* does not wait */
void history_actor_sync(Actor *a);                  /* until an order that it answers is done */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Random histories of holds: two users' holds in part and of all, shared and exclusive, at once and
 * in the queue; the service's monitors and counters; holders' own programs; strangers of several
 * users that come, go, blink, sleep, pin, group and sample while holds are measured; CPUs that go
 * and come; kills of clients and of the service. Each grant and each refusal is judged by what all
 * of them say they had open (history-log.h); some grants are measured too, by another process.
 */

#include "bus-util.h"
#include "history-actor.h"

typedef struct HistoryHost HistoryHost;

#define STRANGERS 4

/* Where histories are made. */
struct HistoryHost {
        Machine machine;
        const char *pmu;                   /* as a hold names it */
        const char *instructions, *cycles; /* as a counter names them; cycles NULL: there is none */
        OrderOpen open;
        bool targets[_ORDER_TARGET_MAX];
        const char *strangers[STRANGERS]; /* their users */
        bool users_may;                   /* users who are not root open events of CPUs */
        bool cpus_go;                     /* CPU 1 can be offline */
        bool (*fits)(unsigned cpu, unsigned n, bool cycles); /* measures, in a process of its own */
        void (*kill)(Client *c);                             /* the service; until it runs again */
};

/* PERFALLOC_TEST_HISTORIES is how many; fails at the first that is not as it should be. */
void histories_run(const HistoryHost *host, unsigned n_default);

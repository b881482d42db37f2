/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Calls about counters, and breakpoints for them, which count exactly.
 */

#include "client.h"

#define COUNTER PERFALLOC_COUNTER_INTERFACE

typedef struct Measured {
        uint64_t value, enabled, running, estimate;
        char *quality;
} Measured;

void measured_clear(Measured *m);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Measured, measured_clear)

/* Something to write to, for breakpoints on it. */
extern volatile uint64_t watched[8];
void watched_write(size_t i, unsigned n);

/* What breakpoints count for so many writes: 0 where they never fire (hits.h). */
uint64_t hits(uint64_t n);

/* "mem:ADDRESS/8:w" of watched[i]. */
char *watched_event(size_t i);

/* Opens one counter with the options (types is "a{sv}"). */
char *counter_open(Client *c, const char *event, const char *types, ...);

/* Opens one on a process, with a proof where the client's user may open one. */
char *counter_open_on(Client *c, const char *event, pid_t pid, bool descendants);
Measured counter_read(Client *c, const char *path);
uint64_t counter_value(Client *c, const char *path);
void counter_do(Client *c, const char *path, const char *method);
bool counter_is(Client *c, const char *path, const char *state);

/* Asserts that the next signal about the counter is that its state has become this one. */
void counter_told(Client *c, const char *path, const char *state);

/* The same event on all CPUs, as a monitor of this priority; event i of watched. */
char *monitor_open(Client *c, size_t i, uint32_t priority);

/* perf_event_open(2) without the service: the descriptor or -errno. pid -1 and a CPU, or 0 and
 * -1. */
int breakpoint_open(pid_t pid, int cpu);

unsigned n_cpus(void);

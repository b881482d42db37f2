/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the benchmarks share. Each runs as root in a rig and prints samples, of which
 * tests/bench/table makes rows:
 *
 * - ROW ours|theirs VALUE
 * - ROW note|skip WORDS
 *
 * ROW begins with $BENCH_PREFIX, if that is set.
 *
 * Times are in microseconds. An unexpected failure ends the program.
 */

#include <perfalloc/dbus.h>
#include <systemd/sd-bus.h>

#include "core/util.h"

#define SERVICE PERFALLOC_BUS_NAME
#define MANAGER PERFALLOC_BUS_NAME, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE

#define OURS   "ours"
#define THEIRS "theirs"

/* r is 0 or more, or -errno. */
void check(int r, const char *what);
/* r is that of a system call. */
int check_errno(int r, const char *what);

uint64_t clock_nsec(clockid_t clock);
double usec_since(uint64_t nsec); /* of CLOCK_MONOTONIC */
void sleep_usec(uint64_t usec);
unsigned trials(unsigned n); /* fewer where BENCH_QUICK is set */

void sample(const char *row, const char *side, double value);
_printf_(3, 4) void say(const char *row, const char *kind, const char *format, ...);

/* ---- the bus ---- */

/* A connection with the credentials of that user; NULL: with our own. */
sd_bus *bus_open(const char *user);
sd_bus_message *bus_message(sd_bus *bus, const char *destination, const char *path,
                            const char *interface, const char *member);
/* Takes the message over. */
sd_bus_message *bus_call(sd_bus *bus, sd_bus_message *m);
/* The shortest possible call: the cost of any call. */
void bus_ping(sd_bus *bus);
double bus_ping_usec(sd_bus *bus);
double bus_ask_usec(sd_bus *bus); /* the same for the bus itself */
/* Drops signals. */
void bus_drain(sd_bus *bus);
pid_t bus_pid(sd_bus *bus, const char *name);

/* ---- holds and counters ---- */

/* A message of Hold with that PMU as its scope. */
sd_bus_message *hold_message(sd_bus *bus, const char *pmu);
/* Holds, waits for the grant, and returns the path; LatencyUSec is put into the second. */
char *hold_take(sd_bus *bus, const char *pmu, int *ret_lease, uint64_t *ret_latency_usec);
void hold_release(sd_bus *bus, const char *path);

/* OpenCounters of n times the event, for the process (0: the caller); returns the reply. */
sd_bus_message *counters_open(sd_bus *bus, const char *event, unsigned n, pid_t pid);
/* The same for all CPUs, as monitors; "breakpoint": breakpoints, each on an address of its own. */
sd_bus_message *monitors_open(sd_bus *bus, const char *event, unsigned n);
void counters_close(sd_bus *bus, sd_bus_message *counters);

/* ---- perf events ---- */

/* Copies of the perf events that the process has, in the order of its descriptors. */
size_t events_take(pid_t pid, int fds[], size_t max);
void events_close(int fds[], size_t n);
int event_open(uint32_t type, uint64_t config, uint64_t address, pid_t pid, int cpu);

/* When events were switched off and on, found without disturbing them: by their enabled times,
 * against the clock. */
typedef struct Watch {
        size_t n;
        const int *fds;
        uint64_t *clock, *enabled;
} Watch;

void watch_init(Watch *w, const int fds[], size_t n);
void watch_done(Watch *w);
void watch_look(Watch *w);
/* Whether none of them has counted between the last two looks. */
bool watch_is_off(Watch *w);
/* CLOCK_MONOTONIC_RAW when the last event was switched off since watch_look(); all are off now. */
uint64_t watch_last_off(Watch *w);
/* The same for switching on since watch_last_off() or watch_is_off(); 0: one is still off. */
uint64_t watch_last_on(Watch *w);

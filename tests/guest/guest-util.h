/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the tests on hardware counters share. They run as root in tests/rig/guest, whose PMU has one
 * counter for cycles only and six for any event, cycles too. Time there is counted in instructions,
 * so counts of user space can be compared exactly.
 *
 * Strangers are processes that count without the service. An obstacle in a test is a stranger; what
 * measures without the service opens events of its own.
 */

#include "bus-util.h"

#define PMU      "armv8_pmuv3"
#define PMU_PATH PERFALLOC_OBJECT_PATH "/pmu/armv8_5fpmuv3"
#define PMU_FACE PERFALLOC_PMU_INTERFACE

#define COUNTERS 7 /* for cycles */
#define GENERAL  6 /* for anything else */

/* ---- events ---- */

typedef enum EventKind {
        CYCLES,
        INSTRUCTIONS,
} EventKind;

typedef struct EventSpec {
        EventKind kind;
        pid_t pid; /* -1: every process on the CPU */
        int cpu;   /* -1: wherever the process runs */
        bool pinned, user, stopped;
        uint64_t period; /* samples, which are not read */
} EventSpec;

typedef struct EventTimes {
        uint64_t value, enabled, running;
} EventTimes;

/* perf_event_open(2): the descriptor or -errno. */
int event_open(const EventSpec *e, int leader);

/* False at the end of file: a pinned event that the kernel has dropped. */
bool event_read(int fd, EventTimes *ret);

/* Whether so many cycles events, as one group, stay on the CPU beside all present ones: the
 * service's promise, measured in another way. */
bool group_fits(int cpu, unsigned n);

/* The same of so many instructions events, which take general counters, and one of cycles. */
bool shape_fits(int cpu, unsigned general, bool cycles);

/* The largest such number. */
unsigned free_on(int cpu);

/* ---- work ---- */

/* Executes exactly so many instructions. */
void burn(uint64_t instructions);

/* A step of a loop that never rests. The emulator runs one CPU at a time: whoever sends this one an
 * interrupt does not wait until its turn ends. */
void burn_aside(void);

/* A process that burns as much as it is told to; between two bytes it does nothing else. */
Actor *worker_new(const char *user);
void worker_burn(Actor *a, unsigned millions);

/* A process that never rests, on one CPU. */
Actor *spinner_new(const char *user, int cpu);

/* ---- strangers ---- */

typedef struct Stranger {
        EventKind kind;
        int cpu;    /* where; -1: on all CPUs */
        unsigned n; /* events on each */
        bool pinned;
        bool own; /* counts itself only, and has that CPU for itself */
        uint64_t period;
} Stranger;

/* A process with events of its own, of root or of another user, who may open them while
 * strangers_may_count(). All of them are open when this returns. One that has a CPU
 * for itself needs kernel.sched_rt_runtime_us to be -1, see cpus_can_be_taken(). */
Actor *stranger_new(const Stranger *s);
Actor *stranger_of(const char *user, const Stranger *s);

/* Whether any user may open events: kernel.perf_event_paranoid -1, else 3 as on any Debian. */
void strangers_may_count(bool may);

void cpus_can_be_taken(bool can);

/* Moves all threads that there are to the other CPUs; -1: none keeps off any CPU. The bus, say,
 * would else wait behind such a process until the kernel balances its load. */
void threads_keep_off(int cpu);

/* Checks its events: each must be readable, and must have been on the PMU since the last check.
 * whole: all the time. */
void stranger_assert_alive(Actor *a, bool whole);

/* ---- the service ---- */

/* Opens one group; the paths are the caller's. */
void counters_open_group(Client *c, const char *const *events, size_t n, char **ret,
                         const char *types, ...);
void paths_free(char **paths, size_t n);

/* "cycles" on all CPUs, as a monitor. */
char *cycles_monitor(Client *c, uint32_t priority);

/* SIGKILL; returns when it runs again. */
void service_kill(Client *c);

/* The only descriptor of a counter; the caller's to close. */
int counter_fd(Client *c, const char *path);

/* What Probe says about a CPU. */
unsigned client_probe(Client *c, int cpu);

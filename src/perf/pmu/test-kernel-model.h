/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests: core PMUs of machines that nobody has at hand. Linked in the place of kernel.c, it
 * answers perf_event_open(2) as the kernel and its drivers do: groups are validated against an
 * empty PMU; CPU-pinned events are scheduled first, then task-pinned ones, CPU-wide flexible groups
 * in their order and those of tasks, until one does not fit; of flexible groups that are too many
 * the first goes behind the others at each multiplexing interval; a pinned one that finds no
 * counter is dropped. Time passes only by calls, and by model_pass().
 *
 * From kernel/events/core.c, arch/x86/events/core.c and intel/core.c, amd/core.c,
 * drivers/perf/arm_pmu.c, arm_pmuv3.c and riscv_pmu_sbi.c.
 */

#include "perf/pmu/kernel.h"
#include "perf/pmu/pmu.h"

typedef struct ModelFixed ModelFixed;
typedef struct ModelPmu ModelPmu;
typedef struct ModelMachine ModelMachine;
typedef struct ModelEvent ModelEvent;

#define MODEL_FIXED_MAX 5u
#define MODEL_PMUS_MAX  2u
#define MODEL_CPUS_MAX  32u
#define MODEL_TURN_USEC 4000u

#define MODEL_HW(name) (1u << PERF_COUNT_HW_##name)

/* A counter that serves some events only. */
struct ModelFixed {
        uint32_t generic; /* PERF_COUNT_HW_*, bits */
        uint64_t raw;     /* config of the PMU's own type; 0: none */
        bool only;        /* they have no other */
};

struct ModelPmu {
        const char *name; /* in tests/sysfs, as its type and CPUs are */
        uint32_t type;
        unsigned first, last;
        unsigned general;
        uint32_t has;  /* PERF_COUNT_HW_*, bits */
        uint32_t some; /* of these: four counters take it, and no others */
        ModelFixed fixed[MODEL_FIXED_MAX];
        bool pairs;     /* config1 bit 0: takes two counters side by side, unless its own is free */
        bool takes_all; /* validates no groups */
};

struct ModelMachine {
        const char *name, *tree;
        unsigned n_cpus;
        ModelPmu pmus[MODEL_PMUS_MAX];
        /* what it should be found to have */
        struct {
                unsigned counters;
                const char *fixed;
        } expected[MODEL_PMUS_MAX];
};

extern const ModelMachine model_machines[];
extern const size_t model_n_machines;
const ModelMachine *model_machine(const char *name);

/* From here on the kernel is this machine's, and nobody counts. Afterwards every event must have
 * been closed. */
void model_boot(const char *name);
void model_halt(void);

/* ---- other users ---- */

#define MODEL_NO_TASK 0 /* CPU-wide */

struct ModelEvent {
        const char *name; /* "cycles", ...; "long-branches" takes a pair */
        unsigned cpu;     /* whose PMU it is too */
        unsigned task;    /* that runs on that CPU alone, see model_run() */
        bool pinned;
        int leader; /* 0: it leads */
};

/* The attr of a name: config and config1 of PERF_TYPE_HARDWARE. */
void model_attr(const char *name, struct perf_event_attr *attr);

/* Counts from now on: a descriptor, or -errno. */
int model_open(const ModelEvent *e);
void model_close(int fd);
bool model_is_on(int fd);
bool model_is_dropped(int fd);

/* The NMI watchdog: pinned cycles on every CPU. */
void model_watchdog(bool runs);

/* ---- CPUs and time ---- */

/* Events of a CPU that goes never count again. */
void model_set_online(unsigned cpu, bool online);

/* Which task wants to run on a CPU without rest; none: it is idle. It runs whenever the thread
 * under test is elsewhere or sleeps, and shares the CPU with it in slices of 3 ms. */
void model_run(unsigned cpu, unsigned task);

/* The same of one of real time: the thread under test never runs there. */
void model_hog(unsigned cpu, unsigned task);

/* The thread under test: where it is, and the CPUs where it may be. */
void model_put(unsigned cpu, uint32_t allowed);

/* Another process opens events, from that CPU: its tasks do not run meanwhile. */
void model_put_opener(unsigned cpu);

/* Counters that are out of use at the moment (a sibling thread has an exclusive event). */
void model_block(unsigned cpu, unsigned general);

/* Events of a cgroup that does not run there are the first ones of the CPU: what is enabled later
 * is not started, and has no times, until an event is opened that counts at once. */
void model_doze(unsigned cpu);

void model_pass(uint64_t usec);

/* Called at each call of the thread under test, which it may not make itself. */
void model_each_call(void (*f)(void *userdata), void *userdata);

/* So many events can be open at once: then it is EMFILE. */
void model_limit(unsigned n);

size_t model_n_open(void);
size_t model_n_calls(void);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Event strings: "cycles:u" and "skl::UOPS_RETIRED:ALL" (libpfm4), "msr/tsc/" and
 * "cpu/event=0x3c,umask=0/u" (the kernel's own form, as perf takes it), "mem:ADDR/LEN:rwx".
 *
 * Which of the three a string is: "mem:" begins the last, a '/' makes the second, all others are
 * names. The kernel's own names (cycles, page-faults, ...) are known without libpfm4, which is
 * loaded when another one is asked for. Not for use in several threads.
 */

#include "perf/pmu/pmu.h"

typedef struct Event Event;

#define EVENT_NAME_MAX 512u /* longest string that is looked at */

struct Event {
        char *name; /* as the client wrote it */
        /* type, config*, bp_*, exclude_*, precise_ip; size is set, disabled is not */
        struct perf_event_attr attr;
        Pmu *pmu;     /* who counts it, borrowed from the table */
        double scale; /* from sysfs' .scale, else 1 */
        char *unit;   /* from sysfs' .unit, else "" */
};

#define EVENT_NULL ((Event){})

/* Refusals: NO_SUCH_EVENT (names the part that failed and the nearest names), INVALID_EVENT,
 * BAD_ADDRESS (an address in the kernel's half while :u leaves the kernel out). What is refused
 * leaves ret as it was. */
int event_parse(const PmuTable *pmus, const char *string, Event *ret, Refusal *why);
void event_done(Event *e);
int event_copy(Event *ret, const Event *e); /* ret is overwritten, not freed */

int events_copy(const Event *events, size_t n, Event **ret);
Event *events_free(Event *events, size_t n); /* returns NULL */

/* Whether it counts in user space alone (exclude_kernel and exclude_hv set, or a breakpoint on a
 * user address): an event without a privilege modifier counts user and kernel, as everywhere. */
bool event_is_user_only(const Event *e);

/* Calls f for every event of this machine whose whole name matches the shell glob pattern, any
 * case. f returns non-zero to stop; that value is returned. name, pmu and description are valid
 * during the call. */
typedef int (*EventVisitor)(void *userdata, const char *name, const char *pmu,
                            const char *description);
int event_list(const PmuTable *pmus, const char *pattern, EventVisitor f, void *userdata);

/* Gives back the 1.1 MB that libpfm4's tables take once a name of theirs was asked for, until the
 * next one is (which then takes 5 ms). */
void event_unload_names(void);

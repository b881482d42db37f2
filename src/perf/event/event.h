/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * An event: what event-parse.h makes of a string, and a group opens.
 */

#include "core/attr-rules.h"
#include "perf/pmu/pmu.h"

typedef struct Event Event;

#define EVENT_NAME_MAX 512u /* bytes; longer strings are refused */

struct Event {
        char *name; /* as the client wrote it */
        /* type, config*, bp_*, exclude_*, precise_ip; size is set, disabled is not */
        union {
                struct perf_event_attr attr;
                Attr full; /* with config3 and config4, where this build's header has none */
        };
        Pmu *pmu;     /* that counts it; borrowed from the table */
        double scale; /* from sysfs' .scale, else 1 */
        char *unit;   /* from sysfs' .unit, else "" */
        char *label;  /* from the term name=, else NULL */
        bool by_cpu;  /* the extended type in config is for processes alone: with a CPU named, the
                       * kernel finds the PMU, also one that is too old for that type */

        /* The same on more PMUs: a generic event on those of a hybrid CPU, or the instances of an
         * uncore PMU. Their own others are none. */
        size_t n_others;
        Event *others;
};

#define EVENT_NULL ((Event){})

void event_done(Event *e);
int event_copy(Event *ret, const Event *e); /* ret is overwritten, not freed */

/* The PMUs that count it, from 0; unit is below event_units(). An event of one PMU beside one of
 * several is the same with each. */
static inline size_t event_units(const Event *e) {
        return 1 + e->n_others;
}

static inline const Event *event_on(const Event *e, size_t unit) {
        return unit > 0 && unit <= e->n_others ? &e->others[unit - 1] : e;
}

/* The CPUs of all its PMUs. -ENOMEM. */
int event_units_cpus(const Event *e, CpuSet *ret);

/* Appends other to the others of e, and takes it over, also on failure. -ENOMEM. */
int event_add_other(Event *e, Event *other);

int events_copy(const Event *events, size_t n, Event **ret);
Event *events_free(Event *events, size_t n); /* returns NULL */

/* Is called for one event of a list; the strings are valid during the call. */
typedef int (*EventVisitor)(void *userdata, const char *name, const char *pmu,
                            const char *description);

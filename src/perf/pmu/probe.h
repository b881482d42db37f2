/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Measures whether what is promised could be counted, on every CPU of a scope, and harms nobody.
 *
 * Each CPU is looked at (look.h). Where the counters are taken it is looked at again, ever more
 * rarely, for PROBE_WATCH_USEC: others may just be leaving (not on `breakpoint`). When none is left
 * to wait for, and some were looked at earlier than others, all are looked at once more, those that
 * have come online meanwhile included: so what a probe confirms was free on every CPU that was
 * online, at one moment as nearly as CPUs can be looked at one after the other. Looks that were
 * further apart, because something else ran meanwhile, are made again, PROBE_ROUNDS times at most.
 * For these everything is opened beforehand but the last event of each, which tells. Where they are
 * always further apart, as even that takes long, they are made twice: each CPU has been seen before
 * and after the first of the last looks. A CPU that is offline has nothing to be measured, and is
 * asked again at each last look.
 *
 * A probe never waits: the caller calls probe_look() at once, and again when next_usec has come,
 * until it says something else than PROBE_AGAIN. Nothing is open in between.
 */

#include "perf/pmu/look.h"

typedef struct Probe Probe;

#define PROBE_WATCH_USEC (50 * USEC_PER_MSEC)
#define PROBE_STEP_USEC  (2 * USEC_PER_MSEC) /* to the second look; each later one twice as long */
#define PROBE_ROUNDS     4u
#define PROBE_APART_USEC                                                                           \
        500u /* and as much more as the looks take themselves, LOOK_TAKES_USEC each */

enum {
        PROBE_DONE,  /* see probe_confirms() */
        PROBE_AGAIN, /* look again at next_usec */
};

/* What has to be free there, asked for at every look. Empty: nothing has to. */
typedef Shape (*ProbeWants)(void *userdata, const Pmu *pmu, unsigned cpu);

struct Probe {
        ProbeWants wants;
        void *userdata;
        uint64_t begun_usec; /* CLOCK_MONOTONIC, as all times here; 0: there was no look yet */
        uint64_t next_usec;
        uint64_t step_usec;
        bool unknown; /* a PMU was added that cannot be measured */
        bool done;
        bool confirmed; /* all was free at the last round of looks */
        size_t n_looks;
        Look *looks; /* one for each CPU of each PMU; free tells what there was when all is done */
        Look **due;  /* room for as many: those of one round */
};

/* -ENOMEM. */
int probe_new(ProbeWants wants, void *userdata, Probe **ret);
Probe *probe_free(Probe *p); /* NULL is fine */
DEFINE_CLEANUP(Probe *, probe_free)

/* CPUs of a PMU, whether they are online or not. Of PMUs that are never scarce there is nothing to
 * be measured; one that cannot be measured makes the probe unknown. -ENOMEM. */
int probe_add(Probe *p, const Pmu *pmu, const CpuSet *cpus);

/* PROBE_DONE, PROBE_AGAIN; -ENOMEM, -EMFILE or -ENFILE from the first look, later ones try again
 * as long as the probe lasts. */
int probe_look(Probe *p, uint64_t now_usec);

/* Whether all that was wanted was free, measured, on every CPU that was online. */
bool probe_confirms(const Probe *p);

/* Whether all CPUs that were to be looked at are offline, and there are any. */
bool probe_is_offline(const Probe *p);

/* Whether what was wanted can be measured: not on a PMU that cannot be, nor offline. */
bool probe_can_confirm(const Probe *p);

/* When it was: the oldest of the last looks. 0 where nothing had to be looked at. */
uint64_t probe_seen_usec(const Probe *p);

/* Whether a CPU was looked at from itself, for there is no other. */
bool probe_is_alone(const Probe *p);

/* What is free on one CPU at this moment, as far as wanted. 0, LOOK_OFFLINE, or -EOPNOTSUPP when
 * nobody can tell, -ENOMEM, -EMFILE, -ENFILE. */
int probe_free_now(const Pmu *pmu, unsigned cpu, Shape wanted, Shape *ret);

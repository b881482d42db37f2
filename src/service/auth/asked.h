/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a request asks for, as polkit is told (details.h), so that a site's rule can allow cycles
 * and instructions and nothing else.
 *
 * Lists have each word once, separated by spaces. One that is too long ends in " ..." instead of
 * what has no room, which is no word of any rule's: nobody is allowed what the rule has not seen.
 */

#include <sys/types.h>

#include "core/cpuset.h"
#include "perf/event/event-words.h"
#include "perf/event/event.h"

typedef struct Asked Asked;

#define ASKED_LIST_MAX  128u /* characters */
#define ASKED_LIST_SIZE (ASKED_LIST_MAX + 1)
#define ASKED_NOBODY    ((uid_t) -1)

/* NULL and empty: there is none. */
struct Asked {
        const char *reason; /* the client's own words */
        const char *scope;  /* process, cpu, cgroup */
        const char *tag;    /* of a hold on behalf of others */
        const char *mode;   /* of a hold: shared, exclusive; of events: counting, sampling */
        char pmus[ASKED_LIST_SIZE];
        char events[ASKED_LIST_SIZE]; /* event-words.h */
        char cpus[ASKED_LIST_SIZE];   /* a list as in /sys */
        uid_t target;                 /* whose process, or on whose behalf; ASKED_NOBODY: none */
};

#define ASKED_NULL ((Asked){ .target = ASKED_NOBODY })

/* Adds it to a list. */
void asked_add(char list[static ASKED_LIST_SIZE], const char *word);

/* Adds the event and its PMU. */
void asked_add_attr(Asked *a, const Attr *attr, const Pmu *pmu);
void asked_add_events(Asked *a, const Event *events, size_t n_events);

void asked_set_cpus(Asked *a, const CpuSet *cpus);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who is due when: a binary heap, by time and then in the order of numbers. Only adding needs
 * memory.
 */

#include "core/util.h"

typedef struct Schedule Schedule;
typedef struct ScheduleEntry ScheduleEntry;

#define SCHEDULE_NEVER UINT64_MAX

struct Schedule {
        ScheduleEntry **entries; /* each not before its parent, entries[(i - 1) / 2] */
        size_t n_entries, n_places;
};

/* Part of whatever is scheduled. */
struct ScheduleEntry {
        uint64_t due_usec; /* SCHEDULE_NEVER: not now, perhaps later */
        uint64_t number;   /* who comes first of those due at the same time */
        size_t place;
};

void schedule_done(Schedule *s); /* nothing may be in it any more */

/* e has its due_usec and number; -ENOMEM. */
int schedule_add(Schedule *s, ScheduleEntry *e);
void schedule_remove(Schedule *s, ScheduleEntry *e);
void schedule_move(Schedule *s, ScheduleEntry *e, uint64_t due_usec);

/* The one that is due first, NULL when nobody is in. */
ScheduleEntry *schedule_first(const Schedule *s);

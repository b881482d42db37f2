/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A hold as its properties show it (org.perfalloc1.Hold in org.perfalloc1(5)), and as text.
 */

#include <systemd/sd-bus.h>

#include "core/cpuset.h"

typedef struct HoldView HoldView;

struct HoldView {
        uint64_t id; /* from the path; 0: unknown */
        uint32_t uid, pid, counters, queue_position;
        char *state, *mode, *cpus;
        char **pmus;     /* NULL-terminated */
        char *obstacles; /* in words; NULL: none */
};

#define HOLD_VIEW_NULL ((HoldView){})

/* Reads an a{sv} of properties. Unknown ones are skipped. */
int hold_view_read(HoldView *ret, sd_bus_message *m);
void hold_view_done(HoldView *v);

/* The N of /org/perfalloc1/hold/N; 0 for any other path. */
uint64_t hold_view_id(const char *path);

/* Whether a is in b's way, or ahead of it in the queue, as far as properties tell: it came earlier,
 * has not ended, and has a PMU and a CPU in common with it. */
bool hold_view_precedes(const HoldView *a, const HoldView *b);

bool hold_view_is(const HoldView *v, const char *state);

/* Text, which the caller frees; NULL: no memory. "all counters of cpu on CPUs 0-3" */
char *hold_view_scope(const HoldView *v);
/* "pid 4711 of alice (all counters of cpu on CPUs 0-3, exclusive, granted)" */
char *hold_view_holder(const HoldView *v);

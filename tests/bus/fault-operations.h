/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The operations that are tried. Each list ends with one without a name.
 */

#include "fault-scene.h"

extern const Operation hold_operations[];
extern const Operation counter_operations[];
extern const Operation cpu_operations[];
extern const Operation other_operations[];

/* Used by each other, and by other tests of faults. */
void prepare_target(Scene *s);
void prepare_family(Scene *s); /* a target with a child */
void prepare_counter(Scene *s);
void run_hold(Scene *s);
void run_open_cpu(Scene *s);
void run_open_pidfd(Scene *s);
void run_sampler(Scene *s);
void run_ticks(Scene *s);

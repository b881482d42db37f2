/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The timer of all samplers, and what happens when it expires or is not waited for.
 */

#include "service/sampler/sampler-object.h"

int sampler_clock_init(Samplers *all);
void sampler_clock_done(Samplers *all);

/* The schedule has changed: sets the timer to the first tick. */
void sampler_clock_set(Samplers *all);

/* Reads the counters of a mapped sampler now, between ticks. */
void sampler_refresh(Sampler *a);

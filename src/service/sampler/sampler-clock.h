/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The one timer of all all, and what happens when it goes off.
 */

#include "service/sampler/sampler-object.h"

int sampler_clock_init(Samplers *all);
void sampler_clock_done(Samplers *all);

/* The schedule has changed: sets the timer to whoever is first now. */
void sampler_clock_set(Samplers *all);

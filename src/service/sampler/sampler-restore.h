/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Restores the samplers of an earlier run of the service.
 */

#include "service/sampler/sampler.h"

/* Restores clients and samplers, after the counters. Their grids go on; the next record tells what
 * was missed in between. -ENOMEM. */
int samplers_restore(Samplers *all);

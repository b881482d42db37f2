/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The samplers of an earlier run of the service.
 */

#include "service/sampler/sampler.h"

/* Clients and samplers, when the counters are there. Their grids go on; what was missed in between
 * the next record tells. -ENOMEM. */
int samplers_restore(Samplers *all);

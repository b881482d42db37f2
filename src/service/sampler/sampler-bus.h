/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * org.perfalloc1.Sampler.
 */

#include "service/sampler/sampler.h"

int sampler_bus_register(Samplers *all);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The PMU objects on the bus, /org/perfalloc1/pmu/NAME.
 */

#include "service/pmu/probe-call.h"

/* probing serves Pmu.Probe. */
int pmu_bus_register(Probing *probing);

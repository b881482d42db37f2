/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * org.perfalloc1.Counter.
 */

#include "service/counter/counter.h"

int counter_bus_register(Counters *counters);

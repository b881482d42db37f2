/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Starts and stops that are repeated a little later, for threads that were being created at that
 * moment (perf/group/gate.h). Not where clients have descriptors, by which they start and stop.
 */

#include "service/counter/counter-object.h"

int counters_gate_init(Counters *counters);
void counters_gate_done(Counters *counters);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What everybody is told of counters, and when: InterfacesAdded, and changes of State and
 * Persistent.
 */

#include "service/counter/counter-object.h"

/* The State of its counters may have changed (or they are new): told when the loop has time. */
void counter_set_changed(CounterSet *set);

void counter_changed(Counter *c, unsigned news); /* COUNTER_CHANGED_ bits */

int counter_signals_init(Counters *counters);

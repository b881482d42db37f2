/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The signals of counters: InterfacesAdded, and changes of State and Persistent.
 */

#include "service/counter/counter-object.h"

/* The State of its counters may have changed, or they are new. This is signalled when the loop has
 * time. */
void counter_set_changed(CounterSet *set);

void counter_changed(Counter *c, unsigned changes); /* COUNTER_CHANGED_ bits */

int counter_signals_init(Counters *counters);

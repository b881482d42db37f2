/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The signals of counters: InterfacesAdded, changes of State and Persistent, InterfacesRemoved.
 * They are queued, and sent when the loop has time.
 */

#include "service/counter/counter-object.h"

/* The State of its counters may have changed, or they are new. This is signalled when the loop has
 * time. */
void counter_set_changed(CounterSet *set);

void counter_changed(Counter *c, unsigned changes); /* COUNTER_CHANGED_ bits */

/* The State for who asks. If somebody was told that the counter is idle, and it is not any more,
 * this is signalled. */
const char *counter_answer_state(Counter *c);

/* The counter is closed and was taken out of its set: frees it once that is told. */
void counter_bury(Counter *c);

/* Sends some of what is queued: ObjectNode.tell, for &counters->objects. */
bool counters_tell(void *objects);

int counter_signals_init(Counters *counters);

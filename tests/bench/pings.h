/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How long others wait: another process, with a connection of bob's, pings the service and the bus
 * in turns, until it is told to end.
 *
 * The samples of a row: ours of the service, theirs of the bus, in microseconds. While one ping
 * waits no other is sent, so each millisecond of waiting counts as another ping: the quantiles are
 * those of pings sent at any moment. Notes say how long it took, and the longest ping.
 */

#include "bench.h"

typedef struct Pinging Pinging;

/* Begins with the first answer. */
Pinging *pings_begin(void);

/* Ends with the answer to the last ping; prints the samples. */
void pings_end(Pinging *p, const char *row);

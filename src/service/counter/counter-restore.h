/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The counters of an earlier run of the service.
 */

#include "service/counter/counter.h"

/* The sets, with their connections. Nothing is done to the kernel's events, and nobody is told,
 * before counters_go_on(). -ENOMEM. */
int counters_restore(Counters *counters);

/* When all who give way are there again: events count or do not, as they should. */
void counters_go_on(Counters *counters);

/* When nothing is kept any more of what the earlier run had closed: what should be open and is not
 * is opened. */
void counters_reopen(Counters *counters);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Restores the counters of an earlier run of the service.
 */

#include "service/counter/counter.h"

/* Restores the sets and their users. The kernel's events stay as they are, and nothing is
 * signalled, before counters_go_on(). -ENOMEM. */
int counters_restore(Counters *counters);

/* To be called after all that yield are restored: starts and stops events as they should be.
 * -ENOMEM. */
int counters_go_on(Counters *counters);

/* To be called when copies of what the earlier run closed are gone: opens what should be open. */
void counters_reopen(Counters *counters);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * CPUs that come online in a granted hold. It is not confirmed until what it is promised was found
 * free there too, beside what its holder has open.
 *
 * It is measured as before the grant (hold-probe.h): what is missing may be what holders have open,
 * by what a scan finds, and in a hold of a number of counters more monitors are told to go. Where
 * that does not help, who is in the way may leave: it is measured again later.
 */

#include "service/hold/hold-object.h"

/* The CPU has come online. */
void holds_cpu_joined(Holds *holds, unsigned cpu);

/* A granted hold's step is over. */
void hold_joined_stepped(Hold *h);

/* Begins with what is in h->joined, if anything is. */
void hold_joined_again(Hold *h);

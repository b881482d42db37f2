/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Calls about holds.
 */

#include "client.h"

#define HOLD PERFALLOC_HOLD_INTERFACE

/* The one limited PMU of every machine, as an option of Hold. */
#define BREAKPOINTS "pmus", "as", 1, "breakpoint"

/* Takes a hold with the options (types is "a{sv}"); the lease is the caller's to close. */
char *hold_take(Client *c, int *ret_lease, const char *types, ...);
char *hold_take_unattended(Client *c, uint64_t lifetime_usec, const char *types, ...);

/* Wait. */
bool hold_wait(Client *c, const char *path);
void hold_release(Client *c, const char *path);
bool hold_is(Client *c, const char *path, const char *state);
unsigned holds_count(Client *c); /* those that have not ended, which can be read for a while */

/* Whether one of the hold's obstacles has the pid. */
bool hold_names(Client *c, const char *path, pid_t pid);

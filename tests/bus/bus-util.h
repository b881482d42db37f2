/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the tests over the bus share. They run as root in tests/rig/fast.
 */

#include "actor.h"
#include "client.h"
#include "counter-calls.h"
#include "hold-calls.h"
#include "service-process.h"

/* Runs a command of the rig; input may be NULL. */
void rig(const char *command, const char *input);
void rig_configure(const char *text); /* perfallocd.conf; starts the service anew */

/* Waits until nobody else uses the machine's breakpoints and CPUs; until the descriptor is closed
 * nobody does. Only a shared rig (tests/rig/fast --shared) needs it: in another one it is -1. */
bool rig_is_shared(void);
int machine_lock(void);

/* True so often in a hundred, by GLib's random numbers: a test's --seed repeats it. */
bool chance(int percent);

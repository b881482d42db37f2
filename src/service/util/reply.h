/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The D-Bus edge: maps what modules return to exactly one D-Bus error.
 */

#include <systemd/sd-bus.h>

#include "core/refusal.h"

/* For the end of a method handler. r is what a module returned: a refusal or a negative errno.
 * Fills in error, and returns the handler's return value. -ESTALE (the caller has left) and
 * -EINPROGRESS (the handler will run again) answer nothing. */
int reply_failure(int r, const Refusal *why, sd_bus_error *error);

/* The same for a message that is answered outside of its handler. */
void reply_failure_later(sd_bus_message *m, int r, const Refusal *why);

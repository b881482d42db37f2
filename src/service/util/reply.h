/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The D-Bus edge: turns what the modules return into exactly one D-Bus error.
 */

#include <systemd/sd-bus.h>

#include "core/refusal.h"

/* For the end of a method handler: r as a module returned it (a refusal, or a negative errno).
 * Fills in error and returns what sd-bus wants to have returned. -ESTALE (the caller has left) and
 * -EINPROGRESS (the message will come back) answer nothing. */
int reply_failure(int r, const Refusal *why, sd_bus_error *error);

/* The same for a message that is answered later, outside of its handler. */
void reply_failure_later(sd_bus_message *m, int r, const Refusal *why);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The memory that a message takes, which libsystemd does not report.
 */

#include <systemd/sd-bus.h>

#include "core/util.h"

/* The approximate size of the path and the arguments in bytes. Each descriptor adds a fixed size.
 * Returns max + 1 for a larger message, without reading on. Rewinds the message. -EBADMSG. */
int message_size(sd_bus_message *m, uint64_t max, uint64_t *ret);

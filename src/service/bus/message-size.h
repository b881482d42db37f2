/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The memory that a message takes, which libsystemd does not report.
 */

#include <systemd/sd-bus.h>

#include "core/refusal.h"

/* Larger calls are refused, because a call may have to be kept. */
#define MESSAGE_SIZE_MAX (2u * 1024u * 1024u)

/* The approximate size of the path and the arguments in bytes. Each descriptor adds a fixed size.
 * Returns max + 1 for a larger message, without reading on. Rewinds the message.
 * REFUSAL_INVALID_ARGS: an argument refers to a descriptor that is not there. -EBADMSG. */
int message_size(sd_bus_message *m, uint64_t max, uint64_t *ret, Refusal *why);

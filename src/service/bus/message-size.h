/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How much memory a message takes: libsystemd does not tell.
 */

#include <systemd/sd-bus.h>

#include "core/util.h"

/* Larger calls are refused: a call may have to be kept. */
#define MESSAGE_SIZE_MAX (2u * 1024u * 1024u)

/* About the number of bytes of the arguments and the path, with something for each descriptor, for
 * it may be in the way of others as well. Looks no further than max: more than that is returned as
 * max + 1. Leaves the message at its beginning. -EBADMSG. */
int message_size(sd_bus_message *m, uint64_t max, uint64_t *ret);

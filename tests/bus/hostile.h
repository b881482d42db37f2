/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A hostile user: sends rubbish, floods the service, reads little, and comes again when the bus has
 * had enough. For actor_new(), with the address of a bool: whether breakpoints are to be left
 * alone. Goes on until it is killed.
 */

#include "bus-util.h"

int play_hostile(int fd, const void *data);

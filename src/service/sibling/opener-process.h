/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The opener itself: answers requests on the socket until its parent has gone. Does not return.
 */

#include <sys/types.h>

void opener_process_run(int socket, pid_t parent);

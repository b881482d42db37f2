/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The reader's side of reader.h.
 */

#include <sys/types.h>

/* Serves requests on socket until the other end is closed. Keeps no other descriptor, and only the
 * capabilities that reading and the workers forked from it need. Ends with parent, the service. */
void reader_process_run(int socket, pid_t parent) __attribute__((noreturn));

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The process that answers one listener: a perf_event_open(2) that waits is read, the service is
 * asked, and the call gets its answer. One call at a time: a task that keeps it busy delays only
 * those that have the same filter.
 *
 * It can read other processes and open nothing. What a program may have is the service's to decide
 * (service/broker/broker-answer.h). What it may not have goes to the kernel, which answers as if
 * there were no broker: that gives a program nothing that it has not anyway, and the exact error.
 */

#include <sys/types.h>

/* Serves until the service closes the other end of socket or the last copy of the pipe that lease
 * reads from, whatever it is doing at that moment; or until no task has the filter any more. Closes
 * all other descriptors. The first message on socket is that of broker_wire_begin(). */
void worker_run(int socket, int lease) __attribute__((noreturn));

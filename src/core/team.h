/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Threads for calls that wait for other CPUs.
 *
 * To switch an event of another CPU the kernel interrupts that CPU and waits, 1 to 100 µs. On a
 * machine with many CPUs such calls are made side by side. The threads do nothing else: between two
 * pieces of work they sleep, and while they work the thread that gave it to them works too, and
 * waits for them.
 */

#include <stddef.h>

/* How many threads pay on a machine with so many CPUs; 0 on small ones. */
unsigned team_size_for(unsigned n_cpus);

/* Starts the threads, which block all signals and have the capabilities of the caller. Where fewer
 * can be had it makes do with these. Once in a process, before team_stop(). */
void team_start(unsigned n_threads);
void team_stop(void);

/* How many threads there are. */
unsigned team_size(void);

/* Calls f(userdata, 0) to f(userdata, n - 1) in any order, several at once, and returns when all
 * have returned. Only one thread of a process calls it, and f does not. */
void team_run(size_t n, void (*f)(void *userdata, size_t i), void *userdata);

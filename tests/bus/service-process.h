/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The service as a process: what can be seen of it from outside.
 */

#include <stdint.h>
#include <sys/types.h>

pid_t service_pid(void);
pid_t service_reader(void); /* its siblings */
pid_t service_opener(void);
unsigned service_descriptors(void); /* that it has open */
unsigned service_events(void);      /* those of them that are perf events */

/* Calls f with a copy of each of these. */
void service_events_each(void (*f)(int fd, void *userdata), void *userdata);

unsigned service_processes(void); /* all that have its user */

/* Puts the monotonic clock of perfallocd-clock forward, before it reads the next message. */
void service_clock_forward(uint64_t usec);
void clock_forward_of(pid_t service, uint64_t usec);

/* Its private bytes; 0 with a sanitizer, which keeps freed memory. */
uint64_t service_memory(void);

/* For service-start: freed memory goes back to the kernel, and is not among those bytes. */
#define SERVICE_MEMORY_STEADY "MALLOC_MMAP_THRESHOLD_=16384 MALLOC_TRIM_THRESHOLD_=16384"

/* How often its log has that. */
unsigned service_said(const char *words);

/* What the rig records of it, running or not: "pid", "ready", "stored" (see tests/rig/keeper.c). 0:
 * nothing. */
int service_number(const char *name);

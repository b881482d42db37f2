/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The service as the process that it is: what can be seen of it without its saying so.
 */

#include <stdint.h>
#include <sys/types.h>

pid_t service_pid(void);
pid_t service_reader(void);         /* its first child */
unsigned service_descriptors(void); /* that it has open */
unsigned service_events(void);      /* those of them that are perf events */

/* Puts the monotonic clock of perfallocd-clock forward, before it reads the next message. */
void service_clock_forward(uint64_t usec);
void clock_forward_of(pid_t service, uint64_t usec);

/* Bytes that are its own; 0 where a sanitizer keeps what was freed. */
uint64_t service_memory(void);

/* For service-start: what is freed goes back to the kernel, and is not found again in those bytes.
 */
#define SERVICE_MEMORY_STEADY "MALLOC_MMAP_THRESHOLD_=16384 MALLOC_TRIM_THRESHOLD_=16384"

/* What the rig writes down of it, whether it runs or not: "pid", "ready", "stored"
 * (tests/rig/keeper.c says of what). 0: nothing. */
int service_number(const char *name);

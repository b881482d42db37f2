/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Whether breakpoints count here. Under some hypervisors (PVM) they can be opened, and take slots
 * as everywhere, but no write is ever reported: their values are 0. Tests about them compare values
 * with hits(), so that all else is tested there too; test-breakpoint-event says that they do not
 * fire.
 *
 * To be included by one file of a program.
 */

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/util.h"

_unused_ static bool hits_never;

/* Before anything else takes the slots. */
__attribute__((constructor)) static void hits_look(void) {
        static volatile uint64_t word;
        struct perf_event_attr attr = { .type = PERF_TYPE_BREAKPOINT,
                                        .size = sizeof(attr),
                                        .bp_type = HW_BREAKPOINT_W,
                                        .bp_addr = (uintptr_t) &word,
                                        .bp_len = sizeof(word),
                                        .exclude_kernel = true,
                                        .exclude_hv = true };
        int fd = (int) syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        uint64_t n = 1;

        if (fd < 0)
                return;
        word = 1;
        hits_never = read(fd, &n, sizeof(n)) == sizeof(n) && n == 0;
        close(fd);
}

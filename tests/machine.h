/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What tests need of the machine that they run on. Where it is not to be had, in a chroot, a
 * container, or as an ordinary user, they say what is missing and are skipped.
 *
 * Tests with such needs are in the suite "machine": whole programs, or cases below /machine of
 * others.
 */

#include <errno.h>
#include <glib.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        MACHINE_PROC = 1 << 0,
        MACHINE_SYSFS = 1 << 1,
        MACHINE_ROOT = 1 << 2,
        MACHINE_EVENTS = 1 << 3,      /* of own processes, in user space */
        MACHINE_BREAKPOINTS = 1 << 4, /* likewise */
        MACHINE_CPU_EVENTS = 1 << 5,  /* of all processes */
        MACHINE_NAMESPACES = 1 << 6,  /* of users, made by an ordinary one */
};

static inline bool machine_has_proc(void) {
        return access("/proc/self/fd", X_OK) == 0;
}

static inline bool machine_has_sysfs(void) {
        return access("/sys/bus/event_source/devices/software/type", R_OK) == 0;
}

static inline bool machine_has_root(void) {
        return geteuid() == 0;
}

static inline bool machine_opens(struct perf_event_attr attr, pid_t pid, int cpu) {
        int fd;

        attr.size = sizeof(attr);
        attr.disabled = attr.exclude_kernel = attr.exclude_hv = 1;
        fd = (int) syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0)
                return errno == ENOSPC; /* others have all of them now */
        close(fd);
        return true;
}

static inline bool machine_has_events(void) {
        return machine_opens((struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE,
                                                       .config = PERF_COUNT_SW_TASK_CLOCK },
                             0, -1);
}

static inline bool machine_has_cpu_events(void) {
        return machine_opens((struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE,
                                                       .config = PERF_COUNT_SW_CPU_CLOCK },
                             -1, 0);
}

static inline bool machine_has_breakpoints(void) {
        static uint64_t watched;

        return machine_opens((struct perf_event_attr){ .type = PERF_TYPE_BREAKPOINT,
                                                       .bp_type = HW_BREAKPOINT_W,
                                                       .bp_addr = (uintptr_t) &watched,
                                                       .bp_len = sizeof(watched) },
                             0, -1);
}

static inline bool machine_has_namespaces(void) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
                _exit((geteuid() != 0 || syscall(SYS_setresuid, 65534, 65534, 65534) == 0) &&
                                      unshare(CLONE_NEWUSER) == 0
                              ? 0
                              : 1);
        return waitpid(pid, &status, 0) == pid && status == 0;
}

/* The first of the needs that cannot be met; NULL: all can. */
static inline const char *machine_missing(unsigned needs) {
        static const struct {
                unsigned need;
                bool (*has)(void);
                const char *words;
        } all[] = {
                { MACHINE_PROC, machine_has_proc, "/proc" },
                { MACHINE_SYSFS, machine_has_sysfs, "/sys with PMUs" },
                { MACHINE_ROOT, machine_has_root, "root" },
                { MACHINE_EVENTS, machine_has_events, "perf events of own processes" },
                { MACHINE_BREAKPOINTS, machine_has_breakpoints, "breakpoints in own processes" },
                { MACHINE_CPU_EVENTS, machine_has_cpu_events, "perf events of all processes" },
                { MACHINE_NAMESPACES, machine_has_namespaces,
                  "user namespaces that an ordinary user can make" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
                if (needs & all[i].need && !all[i].has())
                        return all[i].words;
        return NULL;
}

/* In a case: true when it is skipped. */
static inline bool machine_lacks(unsigned needs) {
        const char *missing = machine_missing(needs);
        g_autofree char *words = missing ? g_strconcat("needs ", missing, NULL) : NULL;

        if (words)
                g_test_skip(words);
        return words;
}

/* At the start of main(), before g_test_init(): true when the whole program is skipped. */
static inline bool machine_skips_all(unsigned needs) {
        const char *missing = machine_missing(needs);

        if (missing)
                g_print("1..0 # SKIP needs %s\n", missing);
        return missing;
}

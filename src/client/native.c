/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "native.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* An event that shows it. The kernel tells of namespaces (PERF_RECORD_NAMESPACES) only who has
 * CAP_PERFMON, whatever the sysctl says: who has it may count every process and trace. */
typedef struct Trial {
        const char *action;
        pid_t pid;
        bool kernel, capable;
} Trial;

static const Trial trials[] = {
        { "sample-own", 0, .kernel = false },
        { "count-kernel", 0, .kernel = true },
        { "count-system", -1, .kernel = true },
        { "count-other", 1, .kernel = true, .capable = true },
        { "count-raw", 0, .kernel = true, .capable = true },
};

static bool trial_succeeds(const Trial *t) {
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                        .size = sizeof(attr),
                                        .config = PERF_COUNT_SW_DUMMY,
                                        .disabled = 1,
                                        .exclude_kernel = !t->kernel,
                                        .exclude_hv = !t->kernel,
                                        .namespaces = t->capable };
        _cleanup_close_ int fd =
                (int) syscall(SYS_perf_event_open, &attr, t->pid, t->pid < 0 ? sched_getcpu() : -1,
                              -1, PERF_FLAG_FD_CLOEXEC);

        return fd >= 0;
}

/* At -1 everybody may trace. No tracepoint is tried: opening one changes the running kernel. */
static bool sysctl_permits_all(void) {
        FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
        int level = 0;
        bool read = f && fscanf(f, "%d", &level) == 1;

        if (f)
                (void) fclose(f);
        return read && level < 0;
}

bool native_allows(const char *action) {
        for (size_t i = 0; i < ELEMENTSOF(trials); i++)
                if (strcmp(trials[i].action, action) == 0 && trial_succeeds(&trials[i]))
                        return true;
        return strcmp(action, "count-raw") == 0 && sysctl_permits_all() &&
               native_allows("count-system");
}

bool native_allows_own(void) {
        return native_allows("sample-own");
}

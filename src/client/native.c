/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "native.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

/* An event that shows it. */
static const struct {
        const char *action;
        pid_t pid;
        bool kernel;
} trials[] = {
        { "sample-own", 0, false },
        { "count-kernel", 0, true },
        { "count-system", -1, true },
};

bool native_allows(const char *action) {
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                        .size = sizeof(attr),
                                        .config = PERF_COUNT_SW_DUMMY,
                                        .disabled = 1 };

        for (size_t i = 0; i < ELEMENTSOF(trials); i++) {
                _cleanup_close_ int fd = -1;

                if (strcmp(trials[i].action, action) != 0)
                        continue;
                attr.exclude_kernel = attr.exclude_hv = !trials[i].kernel;
                fd = (int) syscall(SYS_perf_event_open, &attr, trials[i].pid,
                                   trials[i].pid < 0 ? sched_getcpu() : -1, -1,
                                   PERF_FLAG_FD_CLOEXEC);
                return fd >= 0;
        }
        return false;
}

bool native_allows_own(void) {
        return native_allows("sample-own");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cgroup.h"

#include <sched.h>

#include "perf/pmu/perf-open.h"

/* For a directory of another version 1 hierarchy the kernel returns the ENOENT of unknown events,
 * which a dummy event cannot be. Other errors are left to the real opening. */
int cgroup_check(int fd, Refusal *why) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof(attr),
                .config = PERF_COUNT_SW_DUMMY,
                .disabled = 1,
        };
        _cleanup_close_ int event = perf_open(&attr, fd, sched_getcpu(), -1, PERF_FLAG_PID_CGROUP);

        if (event != -EBADF && event != -ENOENT)
                return 0;
        return refuse(why, REFUSAL_BAD_DESCRIPTOR,
                      "option 'cgroup': the descriptor is not a directory of a cgroup, opened with "
                      "O_RDONLY "
                      "(/sys/fs/cgroup/...; where version 1 is mounted, below perf_event)");
}

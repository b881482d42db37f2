/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-fit.h"

#include <sys/syscall.h>

#define TRIAL_MAX 64u /* more than any core PMU has */

static int trial_open(const Event *e, int leader) {
        struct perf_event_attr attr = e->attr;
        int fd;

        attr.disabled = leader < 0;
        attr.enable_on_exec = leader < 0; /* this thread never execs */
        fd = (int) syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* On arm64 the kernel ignores a disabled leader, which ours are when opened, when it checks whether
 * a group fits (validate_event() of drivers/perf/arm_pmu.c): one too large by one would open and
 * never count. It does not ignore a leader with enable_on_exec, so a group with such a leader is
 * tried on this thread, never enabled. Other errors are left to the real opening. */
int group_fit_check(const Event *events, size_t n_events, Refusal *why) {
        size_t n, max = MIN(n_events, TRIAL_MAX);
        int fds[TRIAL_MAX], error = 0;

        for (size_t i = 0; i < n_events; i++)
                if (events[i].pmu->kind != PMU_CORE)
                        return 0;
        for (n = 0; n < max && error == 0; n++) {
                fds[n] = trial_open(&events[n], n > 0 ? fds[0] : -1);
                error = MIN(fds[n], 0);
        }
        for (size_t i = n; i-- > 0;)
                close_fd(fds[i]);
        if (n < 2 || error != -EINVAL)
                return 0;

        /* the group is too large only if the event opens by itself */
        fds[0] = trial_open(&events[n - 1], -1);
        close_fd(fds[0]);
        if (fds[0] < 0)
                return 0;
        return refuse(why, REFUSAL_INVALID_EVENT,
                      "'%s' does not fit into one group with the %zu events before it: PMU %s "
                      "could never count them all at once; open smaller groups",
                      events[n - 1].name, n - 1, events[n - 1].pmu->name);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/syscall.h>

#include "perf/group/group-part.h"

#define TRIAL_MAX 64u /* more than any core PMU has */

static int trial_open(const Event *e, int leader) {
        struct perf_event_attr attr = e->attr;
        int fd;

        attr.disabled = leader < 0;
        attr.enable_on_exec = leader < 0; /* this thread never execs */
        fd = (int) syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* On arm64 a leader that is disabled, as ours are when they are opened, is not counted when the
 * kernel looks whether a group fits (validate_event() of drivers/perf/arm_pmu.c): one too large
 * would open and never count. A leader that an exec is to enable is counted; so a group of this
 * kind, on this very thread and never on the PMU, tells at once. Any other error is for the real
 * opening. */
int group_check_fit(const Group *g, Refusal *why) {
        size_t n, max = MIN(g->n_events, TRIAL_MAX);
        int fds[TRIAL_MAX], error = 0;

        for (size_t i = 0; i < g->n_events; i++)
                if (g->events[i].pmu->kind != PMU_CORE)
                        return 0;
        for (n = 0; n < max && error == 0; n++) {
                fds[n] = trial_open(&g->events[n], n > 0 ? fds[0] : -1);
                error = MIN(fds[n], 0);
        }
        for (size_t i = n; i-- > 0;)
                close_fd(fds[i]);
        if (n < 2 || error != -EINVAL)
                return 0;

        /* it is the group only if the event is good by itself */
        fds[0] = trial_open(&g->events[n - 1], -1);
        close_fd(fds[0]);
        if (fds[0] < 0)
                return 0;
        return refuse(why, REFUSAL_INVALID_EVENT,
                      "'%s' does not fit into one group with the %zu events before it: PMU %s "
                      "could never count them all at once; open smaller groups",
                      g->events[n - 1].name, n - 1, g->events[n - 1].pmu->name);
}

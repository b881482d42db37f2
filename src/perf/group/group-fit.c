/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-fit.h"

#include "perf/pmu/perf-open.h"

#define TRIAL_MAX 64u /* more than any core PMU has */

static void trial_init(PerfOpen *ret, const Event *e, size_t leader) {
        perf_open_init(ret, &e->attr);
        ret->attr = e->full;
        ret->pid = 0;
        ret->leader = leader;
        ret->attr.known.disabled = leader == PERF_OPEN_NO_LEADER;
        ret->attr.known.enable_on_exec = leader == PERF_OPEN_NO_LEADER; /* nobody execs here */
}

/* 0, or what perf_event_open(2) says of the event at *ret_failed. */
static int trial_run(const Event *events, size_t n, size_t *ret_failed) {
        PerfOpen opens[TRIAL_MAX];
        int error = 0;

        for (size_t i = 0; i < n; i++)
                trial_init(&opens[i], &events[i], i == 0 ? PERF_OPEN_NO_LEADER : 0);
        perf_open_all(opens, n);
        for (size_t i = n; i-- > 0;) {
                if (opens[i].fd < 0) {
                        error = opens[i].fd;
                        *ret_failed = i;
                }
                close_fd(opens[i].fd);
        }
        return error;
}

/* On arm64 the kernel ignores a disabled leader, which ours are when opened, when it checks whether
 * a group fits (validate_event() of drivers/perf/arm_pmu.c): one too large by one would open and
 * never count. It does not ignore a leader with enable_on_exec, so a group with such a leader is
 * tried on the thread that opens, never enabled. Other errors are left to the real opening. */
int group_fit_check(const Event *events, size_t n_events, Refusal *why) {
        size_t failed = 0, alone = 0;

        for (size_t i = 0; i < n_events; i++)
                if (events[i].pmu->kind != PMU_CORE)
                        return 0;
        if (trial_run(events, MIN(n_events, TRIAL_MAX), &failed) != -EINVAL || failed == 0)
                return 0;

        /* the group is too large only if the event opens by itself */
        if (trial_run(&events[failed], 1, &alone) < 0)
                return 0;
        return refuse(why, REFUSAL_INVALID_EVENT,
                      "'%s' does not fit into one group with the %zu events before it: PMU %s "
                      "could never count them all at once; open smaller groups",
                      events[failed].name, failed, events[failed].pmu->name);
}

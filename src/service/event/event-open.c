/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-open.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "perf/pmu/fd-reserve.h"
#include "perf/pmu/perf-open.h"
#include "service/auth/action.h"
#include "service/hold/hold-scope.h"

/* ---- the leader of a group ---- */

static bool is_perf_event(int fd) {
        char path[sizeof("/proc/self/fd/-2147483648")],
                target[sizeof("anon_inode:[perf_event]") + 1];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
                return false;
        target[n] = '\0';
        return strcmp(target, "anon_inode:[perf_event]") == 0;
}

/* Only a perf event is asked for its id: on another file this ioctl may mean anything. */
EventLeader event_check_leader(const Events *events, uid_t uid, int fd) {
        uint64_t id;

        if (!is_perf_event(fd) || ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
                return EVENT_LEADER_NONE;
        return issued_events_has(&events->issued, uid, id) ? EVENT_LEADER_ISSUED
                                                           : EVENT_LEADER_STRANGE;
}

/* ---- holds ---- */

/* The CPUs that it counts on: NULL: all. */
static int event_cpus(const EventOpening *o, CpuSet *one, const CpuSet **ret) {
        int cpu = o->request->cpu, r = cpu >= 0 ? cpuset_add(one, (unsigned) cpu) : 0;

        *ret = cpu >= 0 ? one : NULL;
        return r;
}

int event_admit(const EventOpening *o, Refusal *why) {
        _cleanup_(cpuset_done) CpuSet one = CPUSET_NULL;
        const CpuSet *cpus;
        int r = event_cpus(o, &one, &cpus);

        return r < 0 ? r
                     : holds_admit_opening(o->events->holds, o->uid, &o->request->event, 1, cpus,
                                           why);
}

/* A pinned event of a process competes for its own counters alone. */
static bool event_needs_hold(const EventRequest *q) {
        uint64_t flags = attr_number(&q->attr, ATTR_FLAGS);

        return q->needs.by[ATTR_NEED_HOLD] &&
               (flags & attr_flag(3) || (flags & attr_flag(2) && !event_request_has_target(q)));
}

int event_check_hold(const EventOpening *o, Refusal *why) {
        const EventRequest *q = o->request;
        _cleanup_(cpuset_done) CpuSet one = CPUSET_NULL;
        const CpuSet *cpus;
        char field[64];
        int r;

        if (!event_needs_hold(q))
                return 0;
        r = event_cpus(o, &one, &cpus);
        if (r < 0)
                return r;
        (void) snprintf(field, sizeof(field), "attr: %s", q->needs.by[ATTR_NEED_HOLD]);
        return holds_admit_pinned(o->events->holds, o->uid, &q->event, 1, cpus, field, why);
}

/* ---- opening ---- */

/* An inherited event is never pinned: the kernel starves its children unseen. */
static bool event_is_to_be_pinned(const EventOpening *o) {
        const EventRequest *q = o->request;
        _cleanup_(cpuset_done) CpuSet one = CPUSET_NULL;
        const CpuSet *cpus;

        return q->event.pmu->kind == PMU_CORE && !event_request_joins(q) &&
               !(attr_number(&q->attr, ATTR_FLAGS) & attr_flag(1)) &&
               event_cpus(o, &one, &cpus) == 0 &&
               holds_cover(o->events->holds, o->uid, q->event.pmu, cpus);
}

static void event_adapt(const EventOpening *o, Attr *attr) {
        const unsigned greater = ACTION_COUNT_KERNEL | ACTION_COUNT_OTHER | ACTION_COUNT_SYSTEM;

        if (!o->root && !(event_request_actions(o->request, o->untraceable) & greater))
                attr_confine(attr);
        if (event_is_to_be_pinned(o))
                attr_set_number(attr, ATTR_FLAGS, attr_number(attr, ATTR_FLAGS) | attr_flag(2));
}

static void event_describe(const EventOpening *o, PerfOpen *ret) {
        const EventRequest *q = o->request;

        *ret = PERF_OPEN_NULL;
        ret->attr = q->attr;
        event_adapt(o, &ret->attr);
        ret->cpu = q->cpu;
        ret->group = q->group;
        ret->flags = q->flags & ~PERF_FLAG_FD_OUTPUT;
        ret->allowed = event_request_allowed(q, o->untraceable) | 1u << ATTR_NEED_HOLD;
        if (q->cgroup >= 0)
                ret->pid = q->cgroup;
        if (event_request_has_target(q)) {
                ret->pid = o->target->tid;
                ret->process = o->target->pid;
                ret->pidfd = o->target->pidfd;
        }
}

int event_open(const EventOpening *o) {
        PerfOpen open;

        event_describe(o, &open);
        store_settle(o->events->context->store);
        perf_open_all(&open, 1);
        return fd_reserve_check(open.fd, fd_reserve_first());
}

int event_open_threads(const EventOpening *o, const pid_t *tids, size_t n, int *ret_fds) {
        _cleanup_free_ PerfOpen *opens = reallocarray(NULL, MAX(n, 1u), sizeof(PerfOpen));
        uint64_t reserved = fd_reserve_first();

        if (!opens)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                event_describe(o, &opens[i]);
                opens[i].pid = tids[i];
        }
        store_settle(o->events->context->store);
        perf_open_all(opens, n);
        for (size_t i = 0; i < n; i++)
                ret_fds[i] = fd_reserve_check(opens[i].fd, reserved);
        return 0;
}

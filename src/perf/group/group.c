/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "perf/event/explain.h"
#include "perf/group/group-part.h"
#include "perf/pmu/fd-reserve.h"
#include "perf/process/tree.h"

#define GATE_ROUNDS 4 /* at least two, see groups_gate_all() */

const char *group_scope_name(GroupScope scope) {
        static const char *const names[_GROUP_SCOPE_MAX] = {
                [GROUP_PROCESS] = "process",
                [GROUP_CPU] = "cpu",
                [GROUP_CGROUP] = "cgroup",
        };
        return names[scope];
}

bool group_closes_to_yield(const Group *g) {
        return g->events[0].pmu->closes_to_yield;
}

int group_new(GroupScope scope, Event *events, size_t n_events, Group **ret, Refusal *why) {
        _cleanup_(group_freep) Group *g = calloc(1, sizeof(Group));
        int r;

        if (!g) {
                events_free(events, n_events);
                return -ENOMEM;
        }
        *g = (Group){ .scope = scope, .cgroup = -1, .n_events = n_events, .events = events };
        g->past = calloc(n_events, sizeof(Reading));
        if (!g->past)
                return -ENOMEM;
        for (size_t i = 1; i < n_events; i++)
                if (events[i].pmu->closes_to_yield != events[0].pmu->closes_to_yield)
                        return refuse(why, REFUSAL_INVALID_EVENT,
                                      "'%s' (PMU %s) and '%s' (PMU %s) cannot be one group: they "
                                      "free their counters in different ways",
                                      events[0].name, events[0].pmu->name, events[i].name,
                                      events[i].pmu->name);
        r = n_events > 1 ? group_check_fit(g, why) : 0;
        if (r != 0)
                return r;
        *ret = TAKE_PTR(g);
        return 0;
}

void group_close_part(Group *g, size_t part) {
        if (group_part_is_open(g, part))
                g->version++;
        /* siblings first: closing a leader would set them free to count on their own */
        for (size_t event = g->n_events; event-- > 0;) {
                close_fdp(&group_slot(g, part, event)->fd);
                group_slot(g, part, event)->seen = READING_NULL;
        }
}

Group *group_free(Group *g) {
        if (!g)
                return NULL;
        for (size_t part = 0; part < g->n_parts; part++)
                group_close_part(g, part);
        for (size_t i = 0; i < g->n_targets; i++)
                close_fd(g->targets[i].pidfd);
        close_fd(g->cgroup);
        events_free(g->events, g->n_events);
        free(g->targets);
        free(g->past);
        free(g->parts);
        free(g->slots);
        free(g);
        return NULL;
}

int group_grow(Group *g, size_t n_more) {
        size_t n = MAX(g->n_parts + n_more, 1u); /* a size of 0 would free them */
        GroupPart *parts = reallocarray(g->parts, n, sizeof(GroupPart));
        GroupSlot *slots;

        if (!parts)
                return -ENOMEM;
        g->parts = parts;
        slots = reallocarray(g->slots, n * g->n_events, sizeof(GroupSlot));
        if (!slots)
                return -ENOMEM;
        g->slots = slots;
        return 0;
}

void group_add_part(Group *g, GroupPart part) {
        g->parts[g->n_parts] = part;
        for (size_t event = 0; event < g->n_events; event++)
                *group_slot(g, g->n_parts, event) = (GroupSlot){ .fd = -1 };
        g->n_parts++;
}

int group_add_cpus(Group *g, const CpuSet *cpus, const CpuSet *online) {
        int r = group_grow(g, cpuset_count(cpus));

        if (r < 0)
                return r;
        CPU_FOREACH (cpu, cpus)
                group_add_part(g, (GroupPart){ .cpu = cpu,
                                               .tid = -1,
                                               .ended = !cpuset_has(online, (unsigned) cpu) });
        return 0;
}

/* Opens one event at one part, disabled when it leads: its siblings count when it does. */
static int group_open_slot(const Group *g, size_t part, size_t event, int leader) {
        struct perf_event_attr attr = g->events[event].attr;
        const GroupPart *p = &g->parts[part];
        unsigned long flags = PERF_FLAG_FD_CLOEXEC;
        pid_t tid = p->tid;
        int fd;

        attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        attr.disabled = leader < 0;
        attr.pinned = leader < 0 && g->pinned;
        if (g->scope == GROUP_PROCESS) {
                /* A pinned event must not be inherited: the kernel starves the children and leaves
                 * the parent at running == enabled. */
                attr.inherit = !g->pinned;
                attr.inherit_thread = !g->pinned && !g->targets[p->target].descendants;
        }
        if (g->scope == GROUP_CGROUP) {
                flags |= PERF_FLAG_PID_CGROUP;
                tid = g->cgroup;
        }
        fd = (int) syscall(SYS_perf_event_open, &attr, tid, p->cpu, leader, flags);
        return fd < 0 ? -errno : fd_reserve_check(fd);
}

static int group_open_part(Group *g, size_t part, Refusal *why) {
        for (size_t event = 0; event < g->n_events; event++) {
                int leader = event == 0 ? -1 : group_slot(g, part, 0)->fd;
                int fd = group_open_slot(g, part, event, leader);

                if (fd < 0) {
                        group_close_part(g, part);
                        return explain_open(-fd, &g->events[event], g->parts[part].tid,
                                            g->parts[part].cpu, why);
                }
                group_slot(g, part, event)->fd = fd;
        }
        g->version++;
        return 0;
}

int group_open(Group *g, Refusal *why) {
        _cleanup_free_ bool *opened = calloc(MAX(g->n_parts, 1u), sizeof(bool));

        if (!opened)
                return -ENOMEM;
        for (size_t part = 0; part < g->n_parts; part++) {
                int r;

                if (g->parts[part].ended || group_part_is_open(g, part))
                        continue;
                r = group_open_part(g, part, why);
                if (r == REFUSAL_NO_SUCH_PROCESS &&
                    (g->yielded || group_part_is_pending(g, part))) {
                        /* the thread ended while we had given way: what it counted stays; or
                         * between being seen and being opened, as others may */
                        g->parts[part].ended = true;
                        continue;
                }
                if (r != 0) {
                        for (size_t i = 0; i < part; i++)
                                if (opened[i])
                                        group_close_part(g, i);
                        return r;
                }
                opened[part] = true;
        }
        return 0;
}

static void group_gate(const Group *g, unsigned long request) {
        bool enable = request == PERF_EVENT_IOC_ENABLE;

        if (enable && g->yielded)
                return;
        for (size_t part = 0; part < g->n_parts; part++)
                if (!enable || !group_part_is_pending(g, part))
                        group_part_ioctl(g, part, request);
}

/* Who is born of a thread that has inherited its event itself takes over the state that he sees
 * there, and only then joins the list of those whom an ioctl reaches (inherit_event() in
 * kernel/events/core.c): in between he slips through. Therefore again, as long as somebody is being
 * born. */
static void groups_gate_all(const Group *const *groups, size_t n, unsigned long request) {
        bool inherited = false;

        for (size_t i = 0; i < n; i++)
                inherited |= groups[i]->scope == GROUP_PROCESS && !groups[i]->pinned;
        for (int round = 0; round < GATE_ROUNDS; round++) {
                pid_t last = inherited ? tree_last_born() : 0;

                for (size_t i = 0; i < n; i++)
                        group_gate(groups[i], request);
                if (!inherited || (round > 0 && tree_last_born() == last))
                        break;
        }
}

void group_gate_all(const Group *g, unsigned long request) {
        groups_gate_all(&g, 1, request);
}

void groups_start(Group *const *groups, size_t n) {
        for (size_t i = 0; i < n; i++)
                groups[i]->wanted = true;
        groups_gate_all((const Group *const *) groups, n, PERF_EVENT_IOC_ENABLE);
}

void group_start(Group *g) {
        groups_start(&g, 1);
}

void group_stop(Group *g) {
        g->wanted = false;
        if (!g->yielded)
                group_gate_all(g, PERF_EVENT_IOC_DISABLE);
}

void group_close(Group *g) {
        for (size_t part = 0; part < g->n_parts; part++)
                group_fold_part(g, part);
}

void group_yield(Group *g) {
        g->error = 0;
        if (g->yielded)
                return;
        if (g->wanted)
                group_gate_all(g, PERF_EVENT_IOC_DISABLE);
        if (group_closes_to_yield(g))
                group_close(g);
        g->yielded = true;
}

int group_resume(Group *g, Refusal *why) {
        int r = 0;

        if (!g->yielded)
                return 0;
        if (group_closes_to_yield(g)) {
                for (size_t i = 0; i < g->n_targets; i++)
                        if (g->targets[i].guarded && !g->targets[i].pending)
                                g->targets[i].pending = g;
                r = group_reopen(g, why);
                if (r != 0) {
                        g->error = r > 0 ? refusal_errno(r) : -r;
                        return r;
                }
        }
        g->error = 0;
        g->yielded = false;
        if (g->wanted)
                group_gate_all(g, PERF_EVENT_IOC_ENABLE);
        return 0;
}

int group_mend(Group *g, Refusal *why) {
        int r;

        if (g->yielded)
                return group_resume(g, why);
        r = group_open(g, why);
        g->error = r > 0 ? refusal_errno(r) : -r;
        if (r == 0 && g->wanted)
                group_gate_all(g, PERF_EVENT_IOC_ENABLE);
        return r;
}

void group_cpu_leave(Group *g, unsigned cpu) {
        for (size_t part = 0; part < g->n_parts; part++)
                if (g->parts[part].cpu == (int) cpu && !g->parts[part].ended) {
                        group_fold_part(g, part);
                        g->parts[part].ended = true;
                }
}

int group_cpu_join(Group *g, unsigned cpu, Refusal *why) {
        bool joins = false;

        for (size_t part = 0; part < g->n_parts; part++)
                if (g->parts[part].cpu == (int) cpu && g->parts[part].ended) {
                        g->parts[part].ended = false;
                        joins = true;
                }
        if (!joins || (g->yielded && group_closes_to_yield(g)))
                return 0;
        return g->yielded ? group_open(g, why) : group_mend(g, why);
}

size_t group_descriptors(const Group *g, size_t event, int *fds, size_t n) {
        size_t n_open = 0;

        for (size_t part = 0; part < g->n_parts; part++) {
                int fd = group_slot(g, part, event)->fd;

                if (fd >= 0 && n_open++ < n)
                        fds[n_open - 1] = fd;
        }
        return n_open;
}

size_t group_n_descriptors(const Group *g) {
        return g->n_parts * g->n_events + g->n_targets + (g->cgroup >= 0);
}

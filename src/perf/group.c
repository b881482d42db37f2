/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "perf/explain.h"

static GroupSlot *group_slot(const Group *g, size_t part, size_t event) {
        return &g->slots[part * g->n_events + event];
}

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

static void events_free(Event *events, size_t n) {
        for (size_t i = 0; i < n; i++)
                event_done(&events[i]);
        free(events);
}

int group_new(GroupScope scope, Event *events, size_t n_events, Group **ret, Refusal *why) {
        _cleanup_(group_freep) Group *g = calloc(1, sizeof(Group));

        if (!g) {
                events_free(events, n_events);
                return -ENOMEM;
        }
        *g = (Group){ .scope = scope, .cgroup = -1, .n_events = n_events, .events = events };
        for (size_t i = 1; i < n_events; i++)
                if (events[i].pmu->closes_to_yield != events[0].pmu->closes_to_yield)
                        return refuse(why, REFUSAL_INVALID_EVENT,
                                      "'%s' (PMU %s) and '%s' (PMU %s) cannot be one group: they "
                                      "free their counters in different ways",
                                      events[0].name, events[0].pmu->name, events[i].name,
                                      events[i].pmu->name);
        *ret = TAKE_PTR(g);
        return 0;
}

static void group_close_part(Group *g, size_t part) {
        /* siblings first: closing a leader would set them free to count on their own */
        for (size_t event = g->n_events; event-- > 0;)
                close_fdp(&group_slot(g, part, event)->fd);
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
        free(g->parts);
        free(g->slots);
        free(g);
        return NULL;
}

static int group_grow(Group *g, size_t n_more) {
        size_t n = g->n_parts + n_more;
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

static void group_add_part(Group *g, int cpu, pid_t tid, bool ended) {
        g->parts[g->n_parts] = (GroupPart){ .cpu = cpu, .tid = tid, .ended = ended };
        for (size_t event = 0; event < g->n_events; event++)
                *group_slot(g, g->n_parts, event) = (GroupSlot){ .fd = -1 };
        g->n_parts++;
}

int group_add_cpus(Group *g, const CpuSet *cpus, const CpuSet *online) {
        int r = group_grow(g, cpuset_count(cpus));

        if (r < 0)
                return r;
        CPU_FOREACH(cpu, cpus)
                group_add_part(g, cpu, -1, !cpuset_has(online, (unsigned) cpu));
        return 0;
}

int group_add_target(Group *g, pid_t pid, int pidfd, const Threads *threads) {
        GroupTarget *targets = reallocarray(g->targets, g->n_targets + 1, sizeof(GroupTarget));
        int fd, r;

        if (!targets)
                return -ENOMEM;
        g->targets = targets;
        r = group_grow(g, threads->n_tids);
        if (r < 0)
                return r;
        fd = fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
                return -errno;
        g->targets[g->n_targets++] = (GroupTarget){ .pid = pid, .pidfd = fd };
        for (size_t i = 0; i < threads->n_tids; i++)
                group_add_part(g, -1, threads->tids[i], false);
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
                attr.inherit_thread = !g->pinned && !g->descendants;
        }
        if (g->scope == GROUP_CGROUP) {
                flags |= PERF_FLAG_PID_CGROUP;
                tid = g->cgroup;
        }
        fd = (int) syscall(SYS_perf_event_open, &attr, tid, p->cpu, leader, flags);
        return fd < 0 ? -errno : fd;
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
        return 0;
}

static bool group_part_is_open(const Group *g, size_t part) {
        return group_slot(g, part, 0)->fd >= 0;
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
                if (r == REFUSAL_NO_SUCH_PROCESS && g->yielded) {
                        /* the thread ended while we had given way: what it counted stays */
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

static void group_ioctl(const Group *g, unsigned long request) {
        for (size_t part = 0; part < g->n_parts; part++)
                if (group_part_is_open(g, part))
                        (void) ioctl(group_slot(g, part, 0)->fd, request, 0);
}

void group_start(Group *g) {
        g->wanted = true;
        if (!g->yielded)
                group_ioctl(g, PERF_EVENT_IOC_ENABLE);
}

void group_stop(Group *g) {
        g->wanted = false;
        if (!g->yielded)
                group_ioctl(g, PERF_EVENT_IOC_DISABLE);
}

/* False when the descriptor gives nothing: closed, or a pinned event that the kernel has dropped. */
static bool slot_read(const GroupSlot *s, Reading *ret) {
        struct {
                uint64_t value, enabled, running;
        } data;

        *ret = READING_NULL;
        if (s->fd < 0 || read(s->fd, &data, sizeof(data)) != sizeof(data))
                return false;
        *ret = (Reading){ data.value, data.enabled, data.running };
        return true;
}

void group_reset(Group *g, size_t event) {
        for (size_t part = 0; part < g->n_parts; part++) {
                GroupSlot *s = group_slot(g, part, event);
                Reading now;

                (void) slot_read(s, &now);
                s->base = READING_NULL;
                reading_subtract(&s->base, &now);
        }
}

/* What the descriptors have counted moves to the bases, and they are closed. */
static void group_close(Group *g) {
        for (size_t part = 0; part < g->n_parts; part++) {
                for (size_t event = 0; event < g->n_events; event++) {
                        GroupSlot *s = group_slot(g, part, event);
                        Reading now;

                        if (slot_read(s, &now))
                                reading_add(&s->base, &now);
                }
                group_close_part(g, part);
        }
}

void group_yield(Group *g) {
        g->error = 0;
        if (g->yielded)
                return;
        if (g->wanted)
                group_ioctl(g, PERF_EVENT_IOC_DISABLE);
        if (group_closes_to_yield(g))
                group_close(g);
        g->yielded = true;
}

/* Threads that were born while the group was closed inherited nothing. */
static int group_add_new_threads(Group *g, const GroupTarget *target) {
        _cleanup_(threads_done) Threads now = THREADS_NULL;
        int r = threads_list(target->pid, &now, NULL);

        if (r != 0)
                return MIN(r, 0);
        r = group_grow(g, now.n_tids);
        if (r < 0)
                return r;
        for (size_t i = 0; i < now.n_tids; i++) {
                bool known = false;

                for (size_t part = 0; part < g->n_parts && !known; part++)
                        known = g->parts[part].tid == now.tids[i] && !g->parts[part].ended;
                if (!known)
                        group_add_part(g, -1, now.tids[i], false);
        }
        return 0;
}

int group_resume(Group *g, Refusal *why) {
        int r = 0;

        if (!g->yielded)
                return 0;
        if (group_closes_to_yield(g)) {
                for (size_t i = 0; i < g->n_targets && r == 0; i++)
                        r = group_add_new_threads(g, &g->targets[i]);
                if (r == 0)
                        r = group_open(g, why);
                if (r != 0) {
                        g->error = r > 0 ? refusal_errno(r) : -r;
                        return r;
                }
        }
        g->error = 0;
        g->yielded = false;
        if (g->wanted)
                group_ioctl(g, PERF_EVENT_IOC_ENABLE);
        return 0;
}

void group_read_part(const Group *g, size_t event, size_t part, Reading *ret,
                     Quality *ret_quality) {
        const GroupSlot *s = group_slot(g, part, event);
        Reading now;
        bool read_ok = slot_read(s, &now) || g->parts[part].ended;

        *ret = s->base;
        reading_add(ret, &now);
        *ret_quality = !read_ok || g->yielded ? QUALITY_UNMEASURED : reading_quality(ret);
}

void group_read(const Group *g, size_t event, Reading *ret, Quality *ret_quality) {
        Quality worst = QUALITY_EXACT;

        *ret = READING_NULL;
        for (size_t part = 0; part < g->n_parts; part++) {
                Reading reading;
                Quality quality;

                group_read_part(g, event, part, &reading, &quality);
                /* a thread that has not run since the start has nothing to measure */
                if (reading.enabled > 0 || !group_part_is_open(g, part))
                        worst = MAX(worst, quality);
                reading_add(ret, &reading);
        }
        *ret_quality = ret->enabled == 0 || g->yielded ? QUALITY_UNMEASURED : worst;
}

size_t group_n_descriptors(const Group *g) {
        return g->n_parts * g->n_events + g->n_targets + (g->cgroup >= 0);
}

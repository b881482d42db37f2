/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-open.h"

#include <poll.h>
#include <sys/syscall.h>

#include "perf/event/explain.h"
#include "perf/group/group-read.h"
#include "perf/pmu/fd-reserve.h"
#include "perf/process/threads.h"

#define REOPEN_ROUNDS 8 /* attempts to open on all threads while none is created */

/* Opens one event at one part. A leader is disabled; its siblings count when it does. */
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
                /* A pinned event is not inherited: the kernel may drop that of a child, and the
                 * parent's stays at running == enabled. */
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

/* Whether the part is to be opened. */
static bool group_part_wants_open(const Group *g, size_t part) {
        const GroupPart *p = &g->parts[part];

        return !p->ended && !group_part_is_open(g, part) &&
               !(p->yielded && group_closes_to_yield(g));
}

int group_open_each(Group *g, Refusal *why) {
        int first = 0;

        for (size_t part = 0; part < g->n_parts; part++) {
                int r = group_part_wants_open(g, part)
                                ? group_open_part(g, part, first == 0 ? why : NULL)
                                : 0;

                first = first != 0 ? first : r;
        }
        return first;
}

int group_open(Group *g, Refusal *why) {
        _cleanup_free_ bool *opened = calloc(MAX(g->n_parts, 1u), sizeof(bool));

        if (!opened)
                return -ENOMEM;
        for (size_t part = 0; part < g->n_parts; part++) {
                int r;

                if (!group_part_wants_open(g, part))
                        continue;
                r = group_open_part(g, part, why);
                if (r == REFUSAL_NO_SUCH_PROCESS &&
                    (g->yielded || group_part_is_pending(g, part))) {
                        /* the thread ended while the group had yielded, and what it counted stays;
                         * or between its listing and its opening */
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

/* The living threads of the target; none if it has ended, when its number may be reused. */
static int target_threads(const GroupTarget *target, Threads *ret) {
        struct pollfd exited = { .fd = target->pidfd, .events = POLLIN };
        int r = threads_list(target->pid, ret, NULL);

        if (r == 0 && poll(&exited, 1, 0) != 0)
                threads_done(ret);
        return MIN(r, 0);
}

/* Before opening: parts of threads that have ended end, as their numbers may be reused. Threads
 * born while the group was closed inherited nothing, and get parts; but not with pinned events,
 * which are not inherited, so that they never count later threads. */
static int group_follow(Group *g, size_t target) {
        _cleanup_(threads_done) Threads now = THREADS_NULL;
        _cleanup_free_ bool *known = NULL;
        int r = target_threads(&g->targets[target], &now);

        if (r < 0)
                return r;
        known = calloc(MAX(now.n_tids, 1u), sizeof(bool));
        if (!known || group_grow(g, now.n_tids) < 0)
                return -ENOMEM;
        for (size_t part = 0; part < g->n_parts; part++) {
                GroupPart *p = &g->parts[part];
                const pid_t *place = threads_find(&now, p->tid);

                if (p->target != target)
                        continue;
                p->ended = !place;
                if (place)
                        known[place - now.tids] = true;
        }
        for (size_t i = 0; i < now.n_tids && !g->pinned; i++)
                if (!known[i])
                        group_add_part(g, (GroupPart){ -1, now.tids[i], target, false });
        return 0;
}

/* After opening: whether the target's threads are still those with parts. */
static int group_is_current(const Group *g, size_t target, bool *ret) {
        _cleanup_(threads_done) Threads now = THREADS_NULL;
        int r = target_threads(&g->targets[target], &now);
        size_t n_known = 0;

        *ret = true;
        for (size_t part = 0; part < g->n_parts; part++) {
                if (g->parts[part].target != target)
                        continue;
                if (threads_has(&now, g->parts[part].tid))
                        n_known++;
                else if (group_part_is_open(g, part))
                        *ret = false;
        }
        if (!g->pinned && n_known != now.n_tids)
                *ret = false;
        if (r == 0 && *ret && now.n_tids > 0)
                r = threads_are_all(&now, g->targets[target].pid, ret);
        return r;
}

/* A thread born between the listing and the opening may have inherited the event or not, and the
 * number of one that ended may be reused. So the opening counts only if neither has happened. */
int group_reopen(Group *g, Refusal *why) {
        bool current = false;
        int r = 0;

        for (int round = 0; round < REOPEN_ROUNDS && r == 0; round++) {
                for (size_t i = 0; i < g->n_targets && r == 0; i++)
                        r = group_follow(g, i);
                if (r == 0)
                        r = group_open(g, why);
                current = r == 0;
                for (size_t i = 0; i < g->n_targets && current; i++) {
                        r = group_is_current(g, i, &current);
                        current &= r == 0;
                }
                if (current)
                        return 0;
                group_fold(g);
        }
        return r != 0 ? r
                      : refuse(why, REFUSAL_BUSY,
                               "'%s': the target makes threads faster than they can be counted",
                               g->events[0].name);
}

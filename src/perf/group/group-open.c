/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-open.h"

#include <poll.h>

#include "perf/event/explain.h"
#include "perf/group/group-read.h"
#include "perf/pmu/fd-reserve.h"
#include "perf/pmu/kernel.h"
#include "perf/pmu/perf-open.h"
#include "perf/process/threads.h"

#define REOPEN_ROUNDS 8 /* attempts to open on all threads while none is created */

/* What one call of groups_open() opens. */
typedef struct Opening {
        PerfOpen *opens;
        struct Opened {
                Group *group;
                size_t part, event;
        } * places; /* of the same number */
        size_t n;
        size_t failed; /* what opening_check() complains of */
        bool cpu_left; /* a CPU was offline, whose parts have ended now */
} Opening;

static void opening_done(Opening *o) {
        free(o->opens);
        free(o->places);
}

static bool group_part_wants_open(const Group *g, size_t part) {
        const GroupPart *p = &g->parts[part];

        return !p->ended && !group_part_is_open(g, part) &&
               !(p->yielded && group_closes_to_yield(g));
}

static int opening_init(Opening *o, Group *const *groups, size_t n) {
        size_t most = 0;

        for (size_t i = 0; i < n; i++)
                most += groups[i]->n_parts * groups[i]->n_events;
        o->opens = reallocarray(NULL, MAX(most, 1u), sizeof(PerfOpen));
        o->places = reallocarray(NULL, MAX(most, 1u), sizeof(*o->places));
        return o->opens && o->places ? 0 : -ENOMEM;
}

/* What events of a counter may need, once they were authorized: they give values alone. */
static unsigned group_allowed(const Group *g) {
        return 1u << ATTR_NEED_KERNEL | 1u << ATTR_NEED_RAW | 1u << ATTR_NEED_SYSTEM |
               (g->pinned ? 1u << ATTR_NEED_HOLD : 0);
}

/* A tree's threads are of many processes; those of any other target are its own. */
static void slot_set_target(PerfOpen *o, const Group *g, size_t part) {
        const GroupTarget *target = &g->targets[g->parts[part].target];

        /* A pinned event is not inherited: the kernel may drop that of a child, and the parent's
         * stays at running == enabled. */
        o->attr.known.inherit = !g->pinned;
        o->attr.known.inherit_thread = !g->pinned && !target->descendants;
        o->process = target->pid;
        o->pidfd = target->descendants ? -1 : target->process->fd;
}

/* A leader is disabled; its siblings count when it does, and it tells what they have counted. */
static void slot_describe(PerfOpen *o, const Group *g, size_t part, size_t event) {
        const Event *e = group_part_event(g, part, event);
        struct perf_event_attr *attr = &o->attr.known;

        perf_open_init(o, &e->attr);
        o->attr = e->full;
        if (e->by_cpu && g->parts[part].cpu >= 0)
                attr->config = (uint32_t) attr->config;
        attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        if (event == 0 && g->n_events > 1)
                attr->read_format |= PERF_FORMAT_GROUP;
        attr->disabled = event == 0;
        attr->pinned = event == 0 && g->pinned && !g->unpinning;
        o->allowed = group_allowed(g);
        o->pid = g->parts[part].tid;
        o->cpu = g->parts[part].cpu;
        if (g->scope == GROUP_PROCESS)
                slot_set_target(o, g, part);
        if (g->scope == GROUP_CGROUP) {
                o->flags = PERF_FLAG_PID_CGROUP;
                o->pid = g->cgroup;
        }
}

static void opening_add(Opening *o, Group *g, size_t part) {
        size_t leader = o->n;

        for (size_t event = 0; event < g->n_events && group_part_wants_open(g, part); event++) {
                slot_describe(&o->opens[o->n], g, part, event);
                if (event > 0)
                        o->opens[o->n].leader = leader;
                o->places[o->n++] = (struct Opened){ g, part, event };
        }
}

/* The slots have the descriptors from now on. */
static void opening_run(Opening *o) {
        uint64_t reserved = fd_reserve_first();

        perf_open_all(o->opens, o->n);
        for (size_t i = 0; i < o->n; i++) {
                const struct Opened *place = &o->places[i];
                int *fd = &o->opens[i].fd;

                *fd = fd_reserve_check(*fd, reserved);
                if (*fd >= 0) {
                        group_slot(place->group, place->part, place->event)->fd = *fd;
                        if (place->event == 0)
                                group_touch_part(place->group, place->part);
                }
        }
}

/* Ends parts of threads that ended while the group had yielded, when what they counted stays, or
 * between their listing and their opening; and the part of a CPU that has just gone offline. */
static int opening_check(Opening *o, Refusal *why) {
        for (size_t i = 0; i < o->n; i++) {
                const struct Opened *at = &o->places[i];
                GroupPart *p = &at->group->parts[at->part];

                if (o->opens[i].fd >= 0 || p->ended)
                        continue;
                o->failed = i;
                if (o->opens[i].fd == -ENODEV && p->cpu >= 0 &&
                    kernel_is_offline((unsigned) p->cpu)) {
                        o->cpu_left = p->ended = true;
                        return -ENODEV;
                }
                if (o->opens[i].fd != -ESRCH ||
                    !(at->group->yielded || group_part_is_pending(at->group, at->part)))
                        return explain_open(-o->opens[i].fd,
                                            group_part_event(at->group, at->part, at->event),
                                            p->tid, p->cpu, why);
                group_close_part(at->group, at->part);
                p->ended = true;
        }
        return 0;
}

/* All or nothing. */
static int opening_open(Opening *o, Refusal *why) {
        int r;

        o->cpu_left = false;
        opening_run(o);
        r = opening_check(o, why);
        for (size_t i = 0; i < o->n && r != 0; i++)
                group_close_part(o->places[i].group, o->places[i].part);
        return r;
}

static void opening_add_all(Opening *o, Group *const *groups, size_t n) {
        o->n = 0;
        for (size_t i = 0; i < n; i++)
                for (size_t part = 0; part < groups[i]->n_parts; part++)
                        opening_add(o, groups[i], part);
}

int groups_open(Group *const *groups, size_t n, Refusal *why) {
        _cleanup_(opening_done) Opening o = {};
        int r = opening_init(&o, groups, n);

        if (r < 0)
                return r;
        do {
                opening_add_all(&o, groups, n);
                r = opening_open(&o, why);
        } while (o.cpu_left);
        return r;
}

void groups_open_some(Group *const *groups, size_t n) {
        _cleanup_(opening_done) Opening o = {};

        if (opening_init(&o, groups, n) < 0)
                return;
        opening_add_all(&o, groups, n);
        opening_run(&o);
        for (size_t i = 0; i < o.n; i++)
                if (o.opens[i].fd < 0)
                        group_close_part(o.places[i].group, o.places[i].part);
}

int group_open(Group *g, Refusal *why) {
        return groups_open(&g, 1, why);
}

/* These parts, up to one that cannot be opened: *next is what is behind it. */
static int opening_open_parts(Opening *o, Group *g, size_t *next, size_t end, Refusal *why) {
        int r;

        o->n = 0;
        o->cpu_left = false;
        for (size_t part = *next; part < end; part++)
                opening_add(o, g, part);
        opening_run(o);
        r = opening_check(o, why);
        *next = end;
        if (r != 0) {
                size_t part = o->places[o->failed].part;

                group_close_part(g, part);
                *next = part + 1;
        }
        return r;
}

/* All in one message, which ends with the first that cannot be opened; then as many in each as
 * seems worth it. */
int group_open_each(Group *g, Refusal *why) {
        _cleanup_(opening_done) Opening o = {};
        int r = opening_init(&o, &g, 1), first = 0;

        if (r < 0)
                return r;
        for (size_t next = 0, n = g->n_parts; next < g->n_parts; n = r == 0 ? 2 * n : 1) {
                r = opening_open_parts(&o, g, &next, MIN(next + n, g->n_parts),
                                       first == 0 ? why : NULL);
                first = first != 0 || o.cpu_left ? first : r;
        }
        return first;
}

/* The living threads of the target; none if it has ended, when its number may be reused. */
static int target_threads(const GroupTarget *target, Threads *ret) {
        struct pollfd exited = { .fd = target->process->fd, .events = POLLIN };
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
        if (!known || group_grow(g, now.n_tids * group_units(g)) < 0)
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
                        group_add_thread(g, now.tids[i], g->targets[target].pid, target);
        return 0;
}

/* After opening: whether the target's threads are still those with parts. */
static int group_is_current(const Group *g, size_t target, bool *ret) {
        _cleanup_(threads_done) Threads now = THREADS_NULL;
        int r = target_threads(&g->targets[target], &now);
        size_t n_known = 0;

        *ret = true;
        for (size_t part = 0; part < g->n_parts; part++) {
                if (g->parts[part].target != target || g->parts[part].unit > 0)
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
                               "'%s': the target creates threads faster than they can be attached",
                               g->events[0].name);
}

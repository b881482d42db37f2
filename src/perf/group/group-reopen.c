/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>

#include "perf/group/group-part.h"

#define REOPEN_ROUNDS 8 /* tries to open on all threads while none is born */

/* Those of the target's threads that live, none when it has ended: then its number may be
 * another's. */
static int target_threads(const GroupTarget *target, Threads *ret) {
        struct pollfd exited = { .fd = target->pidfd, .events = POLLIN };
        int r = threads_list(target->pid, ret, NULL);

        if (r == 0 && poll(&exited, 1, 0) != 0)
                threads_done(ret);
        return MIN(r, 0);
}

/* Before opening: parts end or come back as their threads do, for a number that has ended may be
 * somebody else's now; threads that were born while the group was closed inherited nothing and get
 * parts. Pinned events are not inherited, so they never count who is born later. */
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

/* After opening: whether the target's threads are still those that have parts. */
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

/* A thread that is born between the look and the opening may have inherited the event or not, and
 * one that ends may leave its number to another process: it counts only if neither has happened. */
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
                group_close(g);
        }
        return r != 0 ? r
                      : refuse(why, REFUSAL_BUSY,
                               "'%s': the target makes threads faster than they can be counted",
                               g->events[0].name);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-target.h"

#include <string.h>
#include <sys/ioctl.h>

#include "perf/group/group-read.h"
#include "perf/group/group-start.h"
#include "perf/process/process.h"

int group_attach(Group *g, const GroupTarget *target, const pid_t *tids, const pid_t *pids,
                 size_t n_tids) {
        GroupTarget *targets = reallocarray(g->targets, g->n_targets + 1, sizeof(GroupTarget));
        int r;

        if (!targets)
                return -ENOMEM;
        g->targets = targets;
        r = group_grow(g, n_tids * group_units(g));
        if (r < 0)
                return r;
        targets[g->n_targets] = *target;
        (void) shared_fd_ref(target->process);
        g->n_targets++;
        g->version++; /* what there was is the same */
        for (size_t i = 0; i < n_tids; i++)
                group_add_thread(g, tids[i], pids ? pids[i] : target->pid, g->n_targets - 1);
        return 0;
}

void group_accept(Group *g, size_t target) {
        group_touch_target(g, target);
        g->targets[target].pending = NULL;
        if (g->wanted && !g->yielded)
                group_gate_all(g, PERF_EVENT_IOC_ENABLE);
}

/* Folds the parts of a target into the past and removes them. Later targets move up. */
static void group_remove_parts(Group *g, size_t target) {
        size_t n = 0;

        for (size_t part = 0; part < g->n_parts; part++) {
                GroupPart *p = &g->parts[part];
                bool stays = p->target != target;

                if (!stays && p->unit == 0)
                        group_fold_thread(g, part);
                if (p->target >= target)
                        group_touch_part(g, part);
                for (size_t event = 0; event < g->n_events && stays && n < part; event++)
                        *group_slot(g, n, event) = *group_slot(g, part, event);
                p->target -= p->target > target;
                if (stays)
                        g->parts[n++] = *p;
        }
        g->n_parts = n;
}

void group_detach(Group *g, size_t target) {
        group_remove_parts(g, target);
        group_touch_target(g, target);
        shared_fd_unref(g->targets[target].process);
        g->n_targets--;
        g->version++;
        memmove(g->targets + target, g->targets + target + 1,
                (g->n_targets - target) * sizeof(GroupTarget));
}

size_t group_find_target(const Group *g, pid_t pid) {
        size_t i = 0;

        while (i < g->n_targets &&
               (g->targets[i].pid != pid || !process_exists(g->targets[i].process->fd)))
                i++;
        return i;
}

bool group_target_is_awaited(const Group *g, size_t target) {
        const void *pending = g->targets[target].pending;

        return pending && pending != g;
}

/* Who awaits one keeps its index. One that is pending on the group itself has its index looked up
 * anew. */
static bool group_target_is_over(const Group *g, size_t target) {
        return !group_target_is_awaited(g, target) && !g->targets[target].descendants &&
               !process_exists(g->targets[target].process->fd);
}

void group_reap(Group *g, size_t n) {
        for (n = MIN(n, g->n_targets); n > 0; n--) {
                size_t i = (g->reap > 0 && g->reap <= g->n_targets ? g->reap : g->n_targets) - 1;

                g->reap = i;
                if (group_target_is_over(g, i))
                        group_detach(g, i);
        }
}

bool group_is_open_at(const Group *g, size_t target) {
        for (size_t part = 0; part < g->n_parts; part++)
                if (g->parts[part].target == target && group_part_is_open(g, part))
                        return true;
        return false;
}

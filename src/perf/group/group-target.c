/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-target.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include "perf/group/group-read.h"
#include "perf/group/group-start.h"
#include "perf/process/process.h"

int group_attach(Group *g, const GroupTarget *target, const pid_t *tids, const pid_t *pids,
                 size_t n_tids) {
        GroupTarget *targets = reallocarray(g->targets, g->n_targets + 1, sizeof(GroupTarget));
        int fd, r;

        if (!targets)
                return -ENOMEM;
        g->targets = targets;
        r = group_grow(g, n_tids * group_units(g));
        if (r < 0)
                return r;
        fd = fcntl(target->pidfd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
                return -errno;
        targets[g->n_targets] = *target;
        targets[g->n_targets].pidfd = fd;
        g->n_targets++;
        g->version++;
        for (size_t i = 0; i < n_tids; i++)
                group_add_thread(g, tids[i], pids ? pids[i] : target->pid, g->n_targets - 1);
        return 0;
}

void group_accept(Group *g, size_t target) {
        g->targets[target].pending = NULL;
        if (g->wanted && !g->yielded)
                group_gate_all(g, PERF_EVENT_IOC_ENABLE);
}

/* Folds its parts into the past and removes them. */
static void group_remove_parts(Group *g, size_t target) {
        size_t n = 0;

        for (size_t part = 0; part < g->n_parts; part++) {
                bool stays = g->parts[part].target != target;

                if (!stays && g->parts[part].unit == 0)
                        group_fold_thread(g, part);
                for (size_t event = 0; event < g->n_events && stays; event++)
                        *group_slot(g, n, event) = *group_slot(g, part, event);
                if (stays)
                        g->parts[n++] = g->parts[part];
        }
        g->n_parts = n;
}

void group_detach(Group *g, size_t target) {
        size_t last = g->n_targets - 1;

        group_remove_parts(g, target);
        close_fd(g->targets[target].pidfd);
        g->targets[target] = g->targets[last];
        g->n_targets--;
        g->version++;
        for (size_t part = 0; part < g->n_parts; part++)
                if (g->parts[part].target == last)
                        g->parts[part].target = target;
}

size_t group_find_target(const Group *g, pid_t pid) {
        size_t i = 0;

        while (i < g->n_targets &&
               (g->targets[i].pid != pid || !process_exists(g->targets[i].pidfd)))
                i++;
        return i;
}

void group_reap(Group *g) {
        for (size_t i = g->n_targets; i-- > 0;)
                if (!g->targets[i].descendants && !process_exists(g->targets[i].pidfd))
                        group_detach(g, i);
}

bool group_is_open_at(const Group *g, size_t target) {
        for (size_t part = 0; part < g->n_parts; part++)
                if (g->parts[part].target == target && group_part_is_open(g, part))
                        return true;
        return false;
}

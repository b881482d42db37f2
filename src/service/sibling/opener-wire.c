/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opener-wire.h"

#include <string.h>

#define ITEM_FDS 2u /* at most: of a group and of a target */

/* The place of the descriptor among those of the message. Neighbours often have the same. */
static int16_t request_add_fd(OpenerRequest *q, int fd) {
        size_t i = q->n_fds;

        if (fd < 0)
                return -1;
        while (i > 0 && q->fds[i - 1] != fd)
                i--;
        if (i > 0)
                return (int16_t) (i - 1);
        q->fds[q->n_fds] = fd;
        return (int16_t) q->n_fds++;
}

static void request_add(OpenerRequest *q, const PerfOpen *opens, size_t first, const PerfOpen *o) {
        OpenerItem *item = &q->items[q->n++];
        bool leads = o->leader == PERF_OPEN_NO_LEADER;
        bool cgroup = o->flags & PERF_FLAG_PID_CGROUP;

        memset(item, 0, sizeof(*item)); /* the padding too, as it is sent */
        item->attr = o->attr;
        item->pid = cgroup ? -1 : o->pid;
        item->cpu = o->cpu;
        item->leader = leads || o->leader < first ? -1 : (int32_t) (o->leader - first);
        item->process = o->process;
        item->group = request_add_fd(q, leads               ? o->group
                                        : o->leader < first ? opens[o->leader].fd
                                                            : -1);
        item->pidfd = request_add_fd(q, o->pidfd);
        item->cgroup = request_add_fd(q, cgroup ? o->pid : -1);
        item->allowed = (uint8_t) o->allowed;
        item->enables_first = o->enables_first;
        item->flags = o->flags;
}

size_t opener_request_pack(OpenerRequest *q, const PerfOpen *opens, size_t first, size_t n) {
        q->n = q->n_fds = 0;
        while (first + q->n < n && q->n < FD_MESSAGE_MAX && q->n_fds + ITEM_FDS <= FD_MESSAGE_MAX)
                request_add(q, opens, first, &opens[first + q->n]);
        return q->n;
}

static bool fd_is_there(const OpenerRequest *q, int16_t place) {
        return place >= -1 && place < (int) q->n_fds && (place < 0 || q->fds[place] >= 0);
}

static int fd_at(const OpenerRequest *q, int16_t place) {
        return place < 0 ? -1 : q->fds[place];
}

int opener_request_unpack(const OpenerRequest *q, PerfOpen *ret) {
        for (size_t i = 0; i < q->n; i++) {
                const OpenerItem *item = &q->items[i];
                bool cgroup = item->flags & PERF_FLAG_PID_CGROUP;

                if (item->leader < -1 || item->leader >= (int) i || !fd_is_there(q, item->group) ||
                    !fd_is_there(q, item->pidfd) || !fd_is_there(q, item->cgroup) ||
                    cgroup != (item->cgroup >= 0))
                        return -EBADMSG;
                ret[i] = PERF_OPEN_NULL;
                ret[i].attr = item->attr;
                ret[i].pid = cgroup ? fd_at(q, item->cgroup) : item->pid;
                ret[i].cpu = item->cpu;
                if (item->leader >= 0)
                        ret[i].leader = (size_t) item->leader;
                ret[i].process = item->process;
                ret[i].group = fd_at(q, item->group);
                ret[i].pidfd = fd_at(q, item->pidfd);
                ret[i].allowed = item->allowed;
                ret[i].enables_first = item->enables_first;
                ret[i].flags = (unsigned long) item->flags;
        }
        return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf-open.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

static PerfOpener opener;

void perf_open_set(const PerfOpener *o) {
        opener = o ? *o : (PerfOpener){};
}

int perf_open_add_lanes(unsigned n, const CpuSet *cpus) {
        return opener.add_lanes ? opener.add_lanes(opener.userdata, n, cpus) : 0;
}

void perf_open_let_go(void) {
        if (opener.let_go)
                opener.let_go(opener.userdata);
}

void perf_open_init(PerfOpen *ret, const struct perf_event_attr *attr) {
        *ret = PERF_OPEN_NULL;
        memcpy(&ret->attr, attr, MIN(sizeof(ret->attr), sizeof(*attr)));
}

/* The number of a thread may be reused within its process, which changes nothing, or by another. */
static bool target_is_there(const PerfOpen *o) {
        struct pollfd exited = { .fd = o->pidfd, .events = POLLIN };

        if (poll(&exited, 1, 0) != 0)
                return false;
        return o->process <= 0 || syscall(SYS_tgkill, o->process, o->pid, 0) == 0 || errno != ESRCH;
}

static void open_one(PerfOpen *o, int group) {
        union {
                Attr attr; /* with E2BIG the kernel writes its size into it */
                unsigned char bytes[ATTR_SIZE_MAX];
        } sent;
        const size_t size = MIN(attr_number(&o->attr, ATTR_SIZE), sizeof(sent));
        int fd;

        sent.attr = o->attr;
        if (size > sizeof(Attr))
                memset(sent.bytes + sizeof(Attr), 0, size - sizeof(Attr));
        fd = (int) syscall(SYS_perf_event_open, &sent, o->pid, o->cpu, group,
                           o->flags | PERF_FLAG_FD_CLOEXEC);
        o->fd = fd < 0 ? -errno : fd;
        o->size = o->fd == -E2BIG ? (uint32_t) attr_number(&sent.attr, ATTR_SIZE) : 0;
}

static void open_undo(PerfOpen *o, int error) {
        close_fd(o->fd);
        o->fd = error;
}

static bool targets_same(const PerfOpen *a, const PerfOpen *b) {
        return a->pidfd == b->pidfd && a->process == b->process && a->pid == b->pid;
}

/* Who is there when all are open was there at each of them. */
static void targets_check(PerfOpen *opens, size_t n) {
        const PerfOpen *asked = NULL;
        bool there = true;

        for (size_t i = 0; i < n; i++) {
                PerfOpen *o = &opens[i];

                if (o->fd < 0 || o->pidfd < 0)
                        continue;
                if (o->leader != PERF_OPEN_NO_LEADER) {
                        if (opens[o->leader].fd < 0)
                                open_undo(o, -ECANCELED);
                        continue;
                }
                if (!asked || !targets_same(asked, o))
                        there = target_is_there(o);
                asked = o;
                if (!there)
                        open_undo(o, -ESRCH);
        }
}

void perf_open_here(PerfOpen *opens, size_t n) {
        bool stopped = false;

        for (size_t i = 0; i < n; i++) {
                PerfOpen *o = &opens[i];
                int group = o->leader == PERF_OPEN_NO_LEADER ? o->group : opens[o->leader].fd;

                o->fd = -ECANCELED;
                o->from = (unsigned) sched_getcpu();
                if (stopped || (o->leader != PERF_OPEN_NO_LEADER && group < 0))
                        continue;
                if (o->enables_first && ioctl(opens[0].fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
                        o->fd = -errno;
                else
                        open_one(o, group);
                stopped = o->fd < 0 && o->fd != -ESRCH;
        }
        targets_check(opens, n);
}

void perf_open_all(PerfOpen *opens, size_t n) {
        if (n == 0)
                return;
        if (opener.open)
                opener.open(opener.userdata, opens, n);
        else
                perf_open_here(opens, n);
}

int perf_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group,
              unsigned long flags) {
        PerfOpen o;

        perf_open_init(&o, attr);
        o.pid = pid;
        o.cpu = cpu;
        o.group = group;
        o.flags = flags;
        perf_open_all(&o, 1);
        return o.fd;
}

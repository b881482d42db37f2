/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opener.h"

#include <sys/socket.h>
#include <sys/time.h>

#include "service/sibling/opener-process.h"
#include "service/sibling/opener-wire.h"
#include "service/sibling/sibling.h"
#include "service/util/log.h"

#define OPENER_TRIES 3u

struct Opener {
        pid_t pid;
        int fd;
        sd_event_source *io;
        void (*died)(void *userdata);
        void *userdata;
};

_Noreturn static void opener_lost(const char *what) {
        log_plain(LOG_ERR, "The opener process %s; the service exits and is restarted.", what);
        _exit(EXIT_FAILURE);
}

/* Descriptors that did not fit into this process's table are missing at the end. */
static void reply_take(const OpenerReply *a, const int *fds, PerfOpen *opens, size_t n) {
        for (size_t i = 0, next = 0; i < n; i++) {
                opens[i].fd = a->results[i];
                opens[i].from = a->from;
                opens[i].size = a->results[i] == -E2BIG ? a->size : 0;
                if (a->results[i] == 0)
                        opens[i].fd = fds[next] < 0 ? -EMFILE : fds[next++];
        }
}

/* An interruption (the process was stopped, and goes on) or a freezer's pause looks like silence.
 */
static ssize_t reply_receive(const Opener *opener, OpenerReply *ret, int *ret_fds) {
        bool lost;
        ssize_t n = -EAGAIN;

        for (unsigned i = 0; n == -EAGAIN && i < OPENER_TRIES; i++)
                n = wire_receive(opener->fd, ret, sizeof(*ret), ret_fds, FD_MESSAGE_MAX, &lost, 0);
        return n;
}

static void opener_exchange(const Opener *opener, const OpenerRequest *q, PerfOpen *opens) {
        int fds[FD_MESSAGE_MAX], r;
        OpenerReply a;
        ssize_t n;

        r = fd_message_send(opener->fd, q->items, q->n * sizeof(OpenerItem), q->fds, q->n_fds,
                            MSG_DONTWAIT);
        if (r == -ENOMEM || r == -ENOBUFS || r == -ETOOMANYREFS) {
                opens[0].fd = r == -ETOOMANYREFS ? -EMFILE : -ENOMEM;
                return;
        }
        if (r < 0)
                opener_lost("has died");
        n = reply_receive(opener, &a, fds);
        if (n != (ssize_t) OPENER_REPLY_SIZE(q->n))
                opener_lost(n == -EAGAIN ? "does not answer" : "has died");
        reply_take(&a, fds, opens, q->n);
}

/* Whether what comes next is not to be tried. */
static bool opens_stopped(const PerfOpen *opens, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (opens[i].fd < 0 && opens[i].fd != -ESRCH && opens[i].fd != -ECANCELED)
                        return true;
        return false;
}

static void opener_open(void *userdata, PerfOpen *opens, size_t n) {
        static OpenerRequest q;
        bool stopped = false;

        for (size_t first = 0, some; first < n; first += some) {
                some = opener_request_pack(&q, opens, first, n);
                for (size_t i = 0; i < some; i++)
                        opens[first + i].fd = -ECANCELED;
                if (stopped)
                        continue;
                opener_exchange(userdata, &q, &opens[first]);
                stopped = opens_stopped(&opens[first], some);
        }
}

/* The socket waits, but not for ever. */
static int socket_bound(int fd) {
        static const struct timeval bound = { .tv_sec = OPENER_BOUND_USEC / OPENER_TRIES /
                                                        USEC_PER_SEC };

        return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound)) < 0 ? -errno : 0;
}

int opener_fork(Opener **ret) {
        _cleanup_(opener_freep) Opener *opener = calloc(1, sizeof(Opener));
        int r;

        if (!opener)
                return -ENOMEM;
        opener->fd = -1;
        r = sibling_fork(opener_process_run, &opener->pid, &opener->fd);
        if (r >= 0)
                r = socket_bound(opener->fd);
        if (r < 0)
                return r;
        perf_open_set(opener_open, opener);
        *ret = TAKE_PTR(opener);
        return 0;
}

/* It never sends anything that nobody waits for. */
static int on_hangup(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Opener *opener = userdata;

        opener->io = sd_event_source_disable_unref(opener->io);
        opener->died(opener->userdata);
        return 0;
}

int opener_attach_event(Opener *opener, sd_event *event, void (*died)(void *userdata),
                        void *userdata) {
        int r;

        opener->died = died;
        opener->userdata = userdata;
        r = sd_event_add_io(event, &opener->io, opener->fd, EPOLLRDHUP, on_hangup, opener);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(opener->io, "opener");
        return 0;
}

Opener *opener_free(Opener *opener) {
        if (!opener)
                return NULL;
        perf_open_set(NULL, NULL);
        sd_event_source_disable_unref(opener->io);
        close_fd(opener->fd);
        sibling_end(opener->pid);
        free(opener);
        return NULL;
}

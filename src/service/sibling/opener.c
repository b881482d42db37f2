/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opener.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "core/team.h"
#include "service/sibling/opener-process.h"
#include "service/sibling/opener-wire.h"
#include "service/sibling/sibling.h"
#include "service/util/log.h"

#define OPENER_TRIES 3u

/* What a thread of this process talks to the opener by; the first is that of the main thread. */
typedef struct Lane {
        int fd;
        OpenerRequest q;
} Lane;

struct Opener {
        pid_t pid;
        Lane **lanes;
        size_t n_lanes;
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
static ssize_t reply_receive(const Lane *l, OpenerReply *ret, int *ret_fds) {
        bool lost;
        ssize_t n = -EAGAIN;

        for (unsigned i = 0; n == -EAGAIN && i < OPENER_TRIES; i++)
                n = wire_receive(l->fd, ret, sizeof(*ret), ret_fds, FD_MESSAGE_MAX, &lost, 0);
        return n;
}

static void lane_exchange(const Lane *l, PerfOpen *opens) {
        const OpenerRequest *q = &l->q;
        int fds[FD_MESSAGE_MAX], r;
        OpenerReply a;
        ssize_t n;

        r = fd_message_send(l->fd, q->items, q->n * sizeof(OpenerItem), q->fds, q->n_fds,
                            MSG_DONTWAIT);
        if (r == -ENOMEM || r == -ENOBUFS || r == -ETOOMANYREFS) {
                opens[0].fd = r == -ETOOMANYREFS ? -EMFILE : -ENOMEM;
                return;
        }
        if (r < 0)
                opener_lost("has died");
        n = reply_receive(l, &a, fds);
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
        const Opener *opener = userdata;
        Lane *l = opener->lanes[team_lane()];
        bool stopped = false;

        for (size_t first = 0, some; first < n; first += some) {
                some = opener_request_pack(&l->q, opens, first, n);
                for (size_t i = 0; i < some; i++)
                        opens[first + i].fd = -ECANCELED;
                if (stopped)
                        continue;
                lane_exchange(l, &opens[first]);
                stopped = opens_stopped(&opens[first], some);
        }
}

/* The socket waits, but not for ever. */
static int socket_bound(int fd) {
        static const struct timeval bound = { .tv_sec = OPENER_BOUND_USEC / OPENER_TRIES /
                                                        USEC_PER_SEC };

        return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound)) < 0 ? -errno : 0;
}

/* ---- lanes ---- */

/* The socket is the lane's, and is closed on failure. */
static int opener_add_lane(Opener *opener, int fd) {
        Lane **lanes = reallocarray(opener->lanes, opener->n_lanes + 1, sizeof(Lane *));
        Lane *l = NULL;
        int r = -ENOMEM;

        if (lanes) {
                opener->lanes = lanes;
                l = malloc(sizeof(Lane));
        }
        if (l)
                r = socket_bound(fd);
        if (r < 0) {
                close_fd(fd);
                free(l);
                return r;
        }
        l->fd = fd;
        opener->lanes[opener->n_lanes++] = l;
        return 0;
}

/* Returns how many lanes the opener has started. */
static size_t lanes_exchange(const Lane *l, const OpenerLanes *on, const int *fds, size_t n) {
        int32_t started = 0;
        bool lost;

        if (fd_message_send(l->fd, on, sizeof(*on), fds, n, 0) < 0 ||
            wire_receive(l->fd, &started, sizeof(started), NULL, 0, &lost, 0) != sizeof(started))
                opener_lost("does not answer");
        return (size_t) started;
}

static size_t pairs_make(int (*ret)[2], size_t n) {
        size_t i = 0;

        while (i < n && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret[i]) == 0)
                i++;
        return i;
}

static int opener_add_some(Opener *opener, size_t n, const OpenerLanes *on) {
        int pairs[FD_MESSAGE_MAX][2], theirs[FD_MESSAGE_MAX], r = 0;
        size_t n_pairs = pairs_make(pairs, n), n_started = 0;

        for (size_t i = 0; i < n_pairs; i++)
                theirs[i] = pairs[i][1];
        if (n_pairs > 0)
                n_started = lanes_exchange(opener->lanes[0], on, theirs, n_pairs);
        for (size_t i = 0; i < n_pairs; i++) {
                close_fd(pairs[i][1]);
                if (r == 0 && i < n_started)
                        r = opener_add_lane(opener, pairs[i][0]);
                else
                        close_fd(pairs[i][0]);
        }
        return r < 0 ? r : n_started == n ? 0 : -EAGAIN;
}

static int opener_add_lanes(void *userdata, unsigned n, const CpuSet *cpus) {
        OpenerLanes on = {};
        int r = 0;

        memcpy(on.cpus, cpus->words, MIN(cpus->n_words * sizeof(uint64_t), sizeof(on.cpus)));
        for (size_t some; r == 0 && n > 0; n -= some) {
                some = MIN(n, FD_MESSAGE_MAX);
                r = opener_add_some(userdata, some, &on);
        }
        return r;
}

static void opener_let_go(void *userdata) {
        const Opener *opener = userdata;

        (void) lanes_exchange(opener->lanes[0], &(OpenerLanes){}, NULL, 0);
}

/* ---- the process ---- */

int opener_fork(Opener **ret) {
        _cleanup_(opener_freep) Opener *opener = calloc(1, sizeof(Opener));
        int fd, r;

        if (!opener)
                return -ENOMEM;
        r = sibling_fork(opener_process_run, &opener->pid, &fd);
        if (r >= 0)
                r = opener_add_lane(opener, fd);
        if (r < 0)
                return r;
        perf_open_set(&(PerfOpener){ .open = opener_open,
                                     .add_lanes = opener_add_lanes,
                                     .let_go = opener_let_go,
                                     .userdata = opener });
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
        r = sd_event_add_io(event, &opener->io, opener->lanes[0]->fd, EPOLLRDHUP, on_hangup,
                            opener);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(opener->io, "opener");
        return 0;
}

Opener *opener_free(Opener *opener) {
        if (!opener)
                return NULL;
        perf_open_set(NULL);
        sd_event_source_disable_unref(opener->io);
        for (size_t i = 0; i < opener->n_lanes; i++) {
                close_fd(opener->lanes[i]->fd);
                free(opener->lanes[i]);
        }
        free(opener->lanes);
        sibling_end(opener->pid);
        free(opener);
        return NULL;
}

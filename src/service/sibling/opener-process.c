/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opener-process.h"

#include <pthread.h>
#include <string.h>

#include "perf/event/attr.h"
#include "perf/pmu/pmu.h"
#include "service/sibling/opener-wire.h"
#include "service/sibling/privilege.h"
#include "service/sibling/sibling.h"

#define STACK_BYTES ((size_t) 64 * 1024)

/* Whether it may be opened at all, and was authorized for what it needs: 0, or the errno that the
 * kernel would have for it. */
static int item_check(const PmuTable *pmus, const PerfOpen *o) {
        uint64_t type = attr_number(&o->attr, ATTR_TYPE);
        const Pmu *pmu =
                pmu_table_find_event(pmus, (uint32_t) type, attr_number(&o->attr, ATTR_CONFIG));
        AttrNeeds needs;
        Refusal why;
        int r = attr_rules_check(&o->attr, attr_pmu(pmu), &needs, &why);

        if (r != 0)
                return r < 0 ? r : r == REFUSAL_INVALID_EVENT ? -EINVAL : -EPERM;
        for (int need = 0; need < _ATTR_NEED_MAX; need++)
                if (needs.by[need] && !(o->allowed & 1u << need))
                        return -EPERM;
        return 0;
}

/* How many may be opened; the one after these gets *ret_error. */
static size_t items_check(const PmuTable *pmus, const PerfOpen *opens, size_t n, int *ret_error) {
        for (size_t i = 0; i < n; i++) {
                *ret_error = item_check(pmus, &opens[i]);
                if (*ret_error < 0)
                        return i;
        }
        return n;
}

/* As perf_open_here() does, whose failures before that one count. */
static void items_open(const PmuTable *pmus, PerfOpen *opens, size_t n) {
        int error = 0;
        size_t good = items_check(pmus, opens, n, &error);
        bool stopped = false;

        perf_open_here(opens, good);
        for (size_t i = 0; i < good; i++)
                stopped |= opens[i].fd < 0 && opens[i].fd != -ESRCH && opens[i].fd != -ECANCELED;
        for (size_t i = good; i < n; i++)
                opens[i].fd = i == good && !stopped ? error : -ECANCELED;
}

static void items_fail(PerfOpen *opens, size_t n, int error) {
        for (size_t i = 0; i < n; i++) {
                opens[i] = PERF_OPEN_NULL;
                opens[i].fd = error;
        }
}

/* Ends the process when the service has ended. */
static void items_reply(int socket, const PerfOpen *opens, size_t n) {
        OpenerReply a = { .from = opens[0].from };
        int fds[FD_MESSAGE_MAX] = {}, r;
        size_t n_fds = 0;

        for (size_t i = 0; i < n; i++) {
                a.results[i] = MIN(opens[i].fd, 0);
                a.size = MAX(a.size, opens[i].size);
                if (opens[i].fd >= 0)
                        fds[n_fds++] = opens[i].fd;
        }
        r = fd_message_send(socket, &a, OPENER_REPLY_SIZE(n), fds, n_fds, 0);
        if (r == -ETOOMANYREFS) { /* RLIMIT_NOFILE, for descriptors on their way (unix(7)) */
                for (size_t i = 0; i < n; i++)
                        a.results[i] = -EMFILE;
                r = fd_message_send(socket, &a, OPENER_REPLY_SIZE(n), NULL, 0, 0);
        }
        wire_close(fds, n_fds);
        if (r < 0)
                _exit(EIO);
}

/* ---- lanes ---- */

/* A socket, and the thread that serves it. The first one is the process's own. */
typedef struct Lane {
        const PmuTable *pmus;
        int socket;
        unsigned lane; /* 0: the first */
        pthread_t thread;
        struct Lane *next;
        OpenerRequest q;
        PerfOpen opens[FD_MESSAGE_MAX];
} Lane;

static Lane *lanes;

static void request_serve(Lane *l, bool lost) {
        const OpenerRequest *q = &l->q;
        int r = lost ? -EMFILE : opener_request_unpack(q, l->opens);

        if (r < 0)
                items_fail(l->opens, q->n, r);
        else
                items_open(l->pmus, l->opens, q->n);
        items_reply(l->socket, l->opens, q->n);
}

static void lanes_take(Lane *l);

static void request_take(Lane *l) {
        OpenerRequest *q = &l->q;
        bool lost = false;
        ssize_t n = wire_receive(l->socket, q->items, sizeof(q->items), q->fds, FD_MESSAGE_MAX,
                                 &lost, 0);

        if (n == -EAGAIN)
                return;
        q->n_fds = 0;
        while (q->n_fds < FD_MESSAGE_MAX && q->fds[q->n_fds] >= 0)
                q->n_fds++;
        if (n == sizeof(OpenerLanes)) {
                lanes_take(l);
                return;
        }
        if (n == 0 && l->lane > 0) /* the service has no memory for it, or is ending */
                pthread_exit(NULL);
        if (n <= 0 || n % (ssize_t) sizeof(OpenerItem) != 0)
                _exit(n == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
        q->n = (size_t) n / sizeof(OpenerItem);
        request_serve(l, lost);
        wire_close(q->fds, q->n_fds);
}

_Noreturn static void lane_serve(Lane *l) {
        for (;;)
                request_take(l);
}

static void *lane_run(void *userdata) {
        lane_serve(userdata);
}

static int lane_start(const Lane *first, int socket, const pthread_attr_t *attr) {
        Lane *l = calloc(1, sizeof(Lane));
        int r;

        if (!l)
                return ENOMEM;
        l->pmus = first->pmus;
        l->socket = socket;
        l->lane = lanes ? lanes->lane + 1 : 1;
        r = pthread_create(&l->thread, attr, lane_run, l);
        if (r != 0) {
                free(l);
                return r;
        }
        l->next = lanes;
        lanes = l;
        return 0;
}

static size_t lanes_start(const Lane *first, const int *sockets, size_t n, const OpenerLanes *on) {
        pthread_attr_t attr;
        size_t i = 0;
        int r;

        (void) pthread_attr_init(&attr);
        (void) pthread_attr_setstacksize(&attr, STACK_BYTES);
        r = pthread_attr_setaffinity_np(&attr, sizeof(on->cpus), (const cpu_set_t *) on->cpus);
        while (r == 0 && i < n) {
                r = lane_start(first, sockets[i], &attr);
                i += r == 0;
        }
        (void) pthread_attr_destroy(&attr);
        return i;
}

static void lanes_let_go(void) {
        OpenerLanes anywhere;

        memset(&anywhere, 0xff, sizeof(anywhere));
        for (const Lane *l = lanes; l; l = l->next)
                (void) pthread_setaffinity_np(l->thread, sizeof(anywhere.cpus),
                                              (const cpu_set_t *) anywhere.cpus);
}

static void lanes_take(Lane *l) {
        OpenerLanes on;
        int32_t n;

        memcpy(&on, l->q.items, sizeof(on));
        if (l->q.n_fds == 0)
                lanes_let_go();
        n = (int32_t) lanes_start(l, l->q.fds, l->q.n_fds, &on);
        wire_close(&l->q.fds[n], l->q.n_fds - (size_t) n);
        if (fd_message_send(l->socket, &n, sizeof(n), NULL, 0, 0) < 0)
                _exit(EIO);
}

void opener_process_run(int socket, pid_t parent) {
        static PmuTable pmus;
        static Lane first = { .pmus = &pmus };

        if (sibling_reset(&socket) < 0 ||
            sibling_confine("perfalloc-opener", privilege_trim_opener, parent) < 0)
                _exit(EXIT_FAILURE);
        /* No PMU is known where there are none. */
        if (pmu_table_load(&pmus, "/sys") == -ENOMEM)
                _exit(EXIT_FAILURE);
        first.socket = socket;
        lane_serve(&first);
}

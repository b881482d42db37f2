/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opener-process.h"

#include "perf/event/attr.h"
#include "perf/pmu/pmu.h"
#include "service/sibling/opener-wire.h"
#include "service/sibling/privilege.h"
#include "service/sibling/sibling.h"

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

static void request_serve(const PmuTable *pmus, int socket, const OpenerRequest *q, bool lost) {
        static PerfOpen opens[FD_MESSAGE_MAX];
        int r = lost ? -EMFILE : opener_request_unpack(q, opens);

        if (r < 0)
                items_fail(opens, q->n, r);
        else
                items_open(pmus, opens, q->n);
        items_reply(socket, opens, q->n);
}

static void request_take(const PmuTable *pmus, int socket) {
        static OpenerRequest q;
        bool lost = false;
        ssize_t n = wire_receive(socket, q.items, sizeof(q.items), q.fds, FD_MESSAGE_MAX, &lost, 0);

        if (n == -EAGAIN)
                return;
        if (n <= 0 || n % (ssize_t) sizeof(OpenerItem) != 0)
                _exit(n == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
        q.n = (size_t) n / sizeof(OpenerItem);
        q.n_fds = 0;
        while (q.n_fds < FD_MESSAGE_MAX && q.fds[q.n_fds] >= 0)
                q.n_fds++;
        request_serve(pmus, socket, &q, lost);
        wire_close(q.fds, q.n_fds);
}

void opener_process_run(int socket, pid_t parent) {
        static PmuTable pmus;

        if (sibling_reset(&socket) < 0 ||
            sibling_confine("perfalloc-opener", privilege_trim_opener, parent) < 0)
                _exit(EXIT_FAILURE);
        /* No PMU is known where there are none. */
        if (pmu_table_load(&pmus, "/sys") == -ENOMEM)
                _exit(EXIT_FAILURE);
        for (;;)
                request_take(&pmus, socket);
}

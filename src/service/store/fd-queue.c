/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fd-queue.h"

#include <sys/socket.h>

#include "core/clock.h"

/* The bytes and descriptors of one message. */
typedef struct Payload {
        FdLabel labels[FD_QUEUE_FDS_MAX];
        size_t n_labels;
        int fds[FD_QUEUE_FDS_MAX];
        size_t n_fds;
        bool truncated; /* some descriptors did not fit in our table (recvmsg(2), MSG_CTRUNC) */
} Payload;

int fd_queue_new(uint64_t number, FdQueue **ret) {
        FdQueue *q = calloc(1, sizeof(FdQueue));
        int pair[2];

        if (!q)
                return -ENOMEM;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
                free(q);
                return -errno;
        }
        *q = (FdQueue){ .in = pair[0], .out = pair[1], .number = number };
        TAILQ_INIT(&q->messages);
        *ret = q;
        return 0;
}

static void part_free(FdPart *part) {
        FdMessage *m = part->message;

        TAILQ_REMOVE(&m->parts, part, parts);
        m->n_parts--;
        m->n_fds -= part->label.n_fds;
        m->queue->n_fds -= part->label.n_fds;
        if (part->dead) {
                m->n_dead--;
                m->queue->n_dead--;
        }
        free(part);
}

static void message_free(FdMessage *m) {
        FdQueue *q = m->queue;

        while (!TAILQ_EMPTY(&m->parts))
                part_free(TAILQ_FIRST(&m->parts));
        TAILQ_REMOVE(&q->messages, m, messages);
        q->n_messages--;
        free(m);
}

static int message_new(FdQueue *q, FdMessage **ret) {
        FdMessage *m = malloc(sizeof(FdMessage));

        if (!m)
                return -ENOMEM;
        *m = (FdMessage){ .queue = q };
        TAILQ_INIT(&m->parts);
        TAILQ_INSERT_TAIL(&q->messages, m, messages);
        q->n_messages++;
        *ret = m;
        return 0;
}

static int message_add(FdMessage *m, const FdLabel *label, FdPart **ret) {
        FdPart *part = malloc(sizeof(FdPart));

        if (!part)
                return -ENOMEM;
        *part = (FdPart){ .message = m, .label = *label };
        TAILQ_INSERT_TAIL(&m->parts, part, parts);
        m->n_parts++;
        m->n_fds += label->n_fds;
        m->queue->n_fds += label->n_fds;
        *ret = part;
        return 0;
}

FdQueue *fd_queue_free(FdQueue *q) {
        if (!q)
                return NULL;
        while (!TAILQ_EMPTY(&q->messages))
                message_free(TAILQ_FIRST(&q->messages));
        close_fd(q->in);
        close_fd(q->out);
        free(q);
        return NULL;
}

static void payload_close(Payload *p) {
        for (size_t i = 0; i < p->n_fds; i++)
                close_fd(p->fds[i]);
        p->n_fds = 0;
}

/* Looks at a message, which stays in the queue. 0: there is none. */
static int payload_peek(int out, Payload *ret) {
        int flags;
        ssize_t n =
                fd_message_receive(out, ret->labels, sizeof(ret->labels), ret->fds,
                                   FD_QUEUE_FDS_MAX, &ret->n_fds, MSG_PEEK | MSG_DONTWAIT, &flags);

        ret->n_labels = 0;
        if (n <= 0) /* 0: the other end is closed, and the queue empty */
                return n == -EAGAIN ? 0 : (int) n;
        ret->truncated = (flags & MSG_CTRUNC) != 0;
        if (n % sizeof(FdLabel) == 0 && !(flags & MSG_TRUNC)) /* else not from us */
                ret->n_labels = (size_t) n / sizeof(FdLabel);
        return 1;
}

/* Received without room for descriptors: the kernel closes them. */
static int payload_drop(int out) {
        char byte;
        ssize_t n = recv(out, &byte, 1, MSG_DONTWAIT);

        return n < 0 ? -errno : n > 0;
}

size_t fd_labels_n_fds(const FdLabel *labels, size_t n) {
        size_t n_fds = 0;

        for (size_t i = 0; i < n; i++)
                n_fds += labels[i].n_fds;
        return n_fds;
}

int fd_queue_put(FdQueue *q, const FdLabel *labels, size_t n_labels, const int *fds, FdPart **ret) {
        FdMessage *m;
        int r;

        r = message_new(q, &m);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n_labels && r >= 0; i++)
                r = message_add(m, &labels[i], &ret[i]);
        if (r >= 0)
                r = fd_message_send(q->in, labels, n_labels * sizeof(FdLabel), fds,
                                    fd_labels_n_fds(labels, n_labels), 0);
        if (r < 0)
                message_free(m);
        return r;
}

void fd_queue_drop(FdPart *part) {
        if (part->dead)
                return;
        part->dead = true;
        part->message->n_dead++;
        part->message->queue->n_dead++;
}

/* Takes dead parts out of the message's payload. */
static int payload_thin(Payload *p, const FdMessage *m) {
        size_t n_labels = 0, n_fds = 0, from = 0;
        const FdPart *part;

        if (p->truncated)
                return -EMFILE;
        if (p->n_fds != m->n_fds)
                return -EBADMSG;
        TAILQ_FOREACH (part, &m->parts, parts)
                for (uint32_t i = 0; i < part->label.n_fds; i++, from++) {
                        if (part->dead) {
                                close_fd(p->fds[from]);
                                continue;
                        }
                        if (i == 0)
                                p->labels[n_labels++] = part->label;
                        p->fds[n_fds++] = p->fds[from];
                }
        p->n_labels = n_labels;
        p->n_fds = n_fds;
        return 0;
}

/* Moves the first message to the end, without its dead parts. */
static int fd_queue_rotate(FdQueue *q, FdMessage *m) {
        FdPart *part, *next;
        Payload p;
        int r;

        r = payload_peek(q->out, &p);
        if (r >= 0)
                r = r == 0 ? -EBADMSG : payload_thin(&p, m);
        if (r >= 0)
                r = fd_message_send(q->in, p.labels, p.n_labels * sizeof(FdLabel), p.fds, p.n_fds,
                                    0);
        if (r >= 0)
                r = payload_drop(q->out);
        payload_close(&p);
        if (r < 0)
                return r;
        for (part = TAILQ_FIRST(&m->parts); part; part = next) {
                next = TAILQ_NEXT(part, parts);
                if (part->dead)
                        part_free(part);
        }
        TAILQ_REMOVE(&q->messages, m, messages);
        TAILQ_INSERT_TAIL(&q->messages, m, messages);
        return 0;
}

static int fd_queue_sweep_first(FdQueue *q) {
        FdMessage *m = TAILQ_FIRST(&q->messages);
        int r;

        if (m->n_dead < m->n_parts)
                return fd_queue_rotate(q, m);
        r = payload_drop(q->out);
        if (r >= 0)
                message_free(m);
        return r;
}

/* Messages before the last dead part are rotated, as only the first can be dropped. */
int fd_queue_sweep(FdQueue *q, uint64_t until_usec) {
        int r = 0;

        while (q->n_dead > 0 && r >= 0) {
                r = fd_queue_sweep_first(q);
                if (until_usec != UINT64_MAX && now_usec(CLOCK_MONOTONIC) >= until_usec)
                        break;
        }
        return MIN(r, 0);
}

/* Passes the descriptors of one message to f, or closes them. */
static int payload_visit(Payload *p, FdQueueVisit f, void *userdata) {
        int *fds = p->fds, r = 0;

        if (p->truncated || p->n_fds != fd_labels_n_fds(p->labels, p->n_labels)) {
                payload_close(p);
                return p->truncated ? -EMFILE : 0;
        }
        for (size_t i = 0; i < p->n_labels; i++) {
                if (r >= 0)
                        r = f(userdata, &p->labels[i], fds);
                else
                        for (uint32_t fd = 0; fd < p->labels[i].n_fds; fd++)
                                close_fd(fds[fd]);
                fds += p->labels[i].n_fds;
        }
        return r;
}

int fd_queue_read(int out, FdQueueVisit f, void *userdata) {
        int offset = 0, truncated = 0, r;
        Payload p;

        /* with SO_PEEK_OFF each look goes on where the one before ended (socket(7)) */
        if (setsockopt(out, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset)) < 0)
                return -errno;
        while ((r = payload_peek(out, &p)) > 0) {
                r = payload_visit(&p, f, userdata);
                if (r == -EMFILE)
                        truncated = r; /* a smaller message may still fit */
                else if (r < 0)
                        return r;
        }
        return r < 0 ? r : truncated;
}

void fd_queue_drain(int out) {
        while (payload_drop(out) > 0)
                ;
}

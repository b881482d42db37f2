/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shelf.h"

#include <string.h>
#include <sys/socket.h>

/* The bytes and descriptors of one message. */
typedef struct Parcel {
        ShelfLabel label;
        int fds[SHELF_FDS_MAX];
        size_t n_fds;
        bool truncated; /* there were more descriptors than we could have */
} Parcel;

int shelf_new(uint64_t number, Shelf **ret) {
        Shelf *s = calloc(1, sizeof(Shelf));
        int pair[2];

        if (!s)
                return -ENOMEM;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
                free(s);
                return -errno;
        }
        *s = (Shelf){ .in = pair[0], .out = pair[1], .number = number };
        TAILQ_INIT(&s->messages);
        *ret = s;
        return 0;
}

static void shelf_forget(ShelfMessage *m) {
        Shelf *s = m->shelf;

        TAILQ_REMOVE(&s->messages, m, queue);
        s->n_messages--;
        if (m->dead)
                s->n_dead--;
        free(m);
}

Shelf *shelf_free(Shelf *s) {
        if (!s)
                return NULL;
        while (!TAILQ_EMPTY(&s->messages))
                shelf_forget(TAILQ_FIRST(&s->messages));
        close_fd(s->in);
        close_fd(s->out);
        free(s);
        return NULL;
}

static int parcel_send(int in, const ShelfLabel *label, const int *fds) {
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(SHELF_FDS_MAX * sizeof(int))];
        } control;
        struct iovec iov = { .iov_base = (void *) (uintptr_t) label, .iov_len = sizeof(*label) };
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = CMSG_SPACE(label->n_fds * sizeof(int)),
        };
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);

        memset(&control, 0, message.msg_controllen);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(label->n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, label->n_fds * sizeof(int));
        return sendmsg(in, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void parcel_close(Parcel *p) {
        for (size_t i = 0; i < p->n_fds; i++)
                close_fd(p->fds[i]);
        p->n_fds = 0;
}

static void parcel_take_fds(Parcel *p, struct msghdr *message) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                p->n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(p->fds, CMSG_DATA(c), p->n_fds * sizeof(int));
        }
        p->truncated = (message->msg_flags & MSG_CTRUNC) != 0;
}

/* 1: looked at one; 0: there is none. It stays in the queue. */
static int parcel_peek(int out, Parcel *ret) {
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(SHELF_FDS_MAX * sizeof(int))];
        } control;
        struct iovec iov = { .iov_base = &ret->label, .iov_len = sizeof(ret->label) };
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n;

        *ret = (Parcel){};
        n = recvmsg(out, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return errno == EAGAIN ? 0 : -errno;
        if (n == 0)
                return 0; /* the other end is closed, and that was all */
        parcel_take_fds(ret, &message);
        if ((size_t) n < sizeof(ret->label))
                memset(&ret->label, 0, sizeof(ret->label)); /* not ours */
        return 1;
}

/* Received without room for descriptors: the kernel closes them. */
static int parcel_drop(int out) {
        char byte;
        ssize_t n = recv(out, &byte, 1, MSG_DONTWAIT);

        return n < 0 ? -errno : n > 0;
}

int shelf_put(Shelf *s, const ShelfLabel *label, const int *fds, ShelfMessage **ret) {
        ShelfMessage *m = malloc(sizeof(ShelfMessage));
        int r;

        if (!m)
                return -ENOMEM;
        r = parcel_send(s->in, label, fds);
        if (r < 0) {
                free(m);
                return r;
        }
        *m = (ShelfMessage){ .shelf = s, .label = *label };
        TAILQ_INSERT_TAIL(&s->messages, m, queue);
        s->n_messages++;
        *ret = m;
        return 0;
}

void shelf_drop(ShelfMessage *m) {
        if (m->dead)
                return;
        m->dead = true;
        m->shelf->n_dead++;
}

/* The first message becomes the last. */
static int shelf_turn(Shelf *s, ShelfMessage *m) {
        Parcel p;
        int r;

        r = parcel_peek(s->out, &p);
        if (r > 0 && p.truncated)
                r = -EMFILE;
        if (r > 0)
                r = parcel_send(s->in, &p.label, p.fds);
        if (r >= 0)
                r = parcel_drop(s->out);
        parcel_close(&p);
        if (r < 0)
                return r;
        TAILQ_REMOVE(&s->messages, m, queue);
        TAILQ_INSERT_TAIL(&s->messages, m, queue);
        return 0;
}

int shelf_sweep(Shelf *s) {
        /* the living ones before the last dead one have to make room for it */
        while (s->n_dead > 0) {
                ShelfMessage *m = TAILQ_FIRST(&s->messages);
                int r;

                if (m->dead) {
                        r = parcel_drop(s->out);
                        if (r >= 0)
                                shelf_forget(m);
                } else
                        r = shelf_turn(s, m);
                if (r < 0)
                        return r;
        }
        return 0;
}

int shelf_read(int out, ShelfReader f, void *userdata) {
        int offset = 0, r;
        Parcel p;

        /* each look goes on where the one before ended */
        if (setsockopt(out, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset)) < 0)
                return -errno;
        while ((r = parcel_peek(out, &p)) > 0) {
                if (p.truncated || p.n_fds != p.label.n_fds) {
                        parcel_close(&p);
                        if (p.truncated)
                                return -EMFILE;
                        continue;
                }
                r = f(userdata, &p.label, p.fds);
                if (r < 0)
                        return r;
        }
        return r;
}

void shelf_drain(int out) {
        while (parcel_drop(out) > 0)
                ;
}

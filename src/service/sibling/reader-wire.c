/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reader-wire.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "service/sibling/wire.h"

static int fds_refuse(int *fds, size_t n_fds, int r) {
        wire_close(fds, n_fds);
        return r;
}

int reader_request_send(int socket, const ReaderRequest *q, const int fds[2]) {
        size_t n_fds = fds[0] < 0 ? 0 : fds[1] < 0 ? 1 : 2;

        return fd_message_send(socket, q, READER_REQUEST_SIZE(q->n_gids), fds, n_fds, MSG_DONTWAIT);
}

int reader_request_receive(int socket, ReaderRequestBuffer *ret, int ret_fds[2]) {
        bool lost = false;
        ssize_t n = wire_receive(socket, ret, sizeof(*ret), ret_fds, 2, &lost, MSG_DONTWAIT);

        if (n == 0 || n == -EAGAIN)
                return (int) n;
        if (n < (ssize_t) READER_REQUEST_SIZE(0) || ret->q.n_gids > READER_GIDS_MAX ||
            n != (ssize_t) READER_REQUEST_SIZE(ret->q.n_gids) || ret->q.op >= _READER_OP_MAX)
                return fds_refuse(ret_fds, 2, -EBADMSG);
        return lost ? fds_refuse(ret_fds, 2, -EMFILE) : 1;
}

int reader_reply_send(int socket, const ReaderReply *a, int fd) {
        return fd_message_send(socket, a, sizeof(*a), &fd, fd >= 0, 0);
}

int reader_reply_receive(int socket, ReaderReply *ret, int *ret_fd) {
        bool lost = false;
        ssize_t n = wire_receive(socket, ret, sizeof(*ret), ret_fd, 1, &lost, MSG_DONTWAIT);

        if (n == 0 || n == -EAGAIN)
                return (int) n;
        if (n != sizeof(*ret) || ret->op >= _READER_OP_MAX)
                return fds_refuse(ret_fd, 1, -EBADMSG);
        return lost ? fds_refuse(ret_fd, 1, -EMFILE) : 1;
}

int reader_file_map(int fd, void **ret, size_t *ret_size) {
        struct stat st;
        void *p = NULL;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -EBADMSG;
        if (st.st_size > 0)
                p = mmap(NULL, (size_t) st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
                return -errno;
        *ret = p;
        *ret_size = (size_t) st.st_size;
        return 0;
}

int reader_shared_find(const ReaderShared *s, size_t size, const ProcessFacts **ret_processes,
                       size_t *ret_n_processes, const SeizedThread **ret_threads,
                       size_t *ret_n_threads) {
        size_t rest;

        if (!s || size < sizeof(*s))
                return -EBADMSG;
        rest = size - sizeof(*s);
        if (s->n_processes > rest / sizeof(ProcessFacts))
                return -EBADMSG;
        rest -= s->n_processes * sizeof(ProcessFacts);
        if (rest % sizeof(SeizedThread) != 0 || s->n_threads != rest / sizeof(SeizedThread))
                return -EBADMSG;
        *ret_n_processes = s->n_processes;
        *ret_n_threads = s->n_threads;
        *ret_processes = (const ProcessFacts *) (s + 1);
        *ret_threads = (const SeizedThread *) (*ret_processes + s->n_processes);
        return 0;
}

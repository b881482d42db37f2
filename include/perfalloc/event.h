/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PERFALLOC_EVENT_H
#define PERFALLOC_EVENT_H

/*
 * The stream of OpenEvents of org.perfalloc1: a SOCK_SEQPACKET socket with a message for each
 * event. Its data is the thread's number, 64 bits in the byte order of the host; with it comes the
 * descriptor (unix(7), SCM_RIGHTS). Then the stream ends. See org.perfalloc1(5).
 */

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Receives the next event; ret_tid (may be NULL) gets its thread, 0 on failure. Returns the
 * descriptor, which has close-on-exec set, or a negative errno: -ENODATA: that was all; -EMFILE:
 * this process has no room for the descriptor, which is lost. */
static inline int perfalloc_event_receive(int stream, uint64_t *ret_tid) {
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int))];
        } control;
        uint64_t tid = 0;
        struct iovec iov = { &tid, sizeof(tid) };
        struct msghdr m;
        ssize_t n;
        int fd;

        if (ret_tid)
                *ret_tid = 0;
        memset(&m, 0, sizeof(m));
        m.msg_iov = &iov;
        m.msg_iovlen = 1;
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
        do
                n = recvmsg(stream, &m, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
                return n < 0 ? -errno : -ENODATA;
        if (!CMSG_FIRSTHDR(&m))
                return -EMFILE;
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
        if (ret_tid)
                *ret_tid = tid;
        return fd;
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "passed-sockets.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "core/fd-message.h"
#include "service/util/fd-copies.h"

static int bus_fd = -1, null_fd = -1;

/* Whether it is a socket, which then closes in the background until its owner changes that: what
 * remains where there are no copies. Unlike fstat(2) this asks no file system. EBADF: O_PATH. */
static bool socket_calm(int fd) {
        static const struct linger background = {};

        return setsockopt(fd, SOL_SOCKET, SO_LINGER, &background, sizeof(background)) >= 0 ||
               (errno != ENOTSOCK && errno != EBADF);
}

static int socket_option(int fd, int option) {
        socklen_t size = sizeof(int);
        int value;

        return getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

/* The only one that a method takes (Broker's option prover). What is queued in one could take long
 * to close as well. */
static bool socket_is_taken(int fd) {
        char byte;

        return socket_option(fd, SO_DOMAIN) == AF_UNIX &&
               socket_option(fd, SO_TYPE) == SOCK_SEQPACKET &&
               recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) <= 0;
}

static size_t sockets_find(const int *fds, size_t n, int *ret) {
        size_t n_found = 0;

        for (size_t i = 0; i < n; i++)
                if (socket_calm(fds[i]) && !socket_is_taken(fds[i]))
                        ret[n_found++] = fds[i];
        return n_found;
}

static void sockets_replace(const int *fds, size_t n) {
        FdCopies copies;

        if (fd_copies_make(&copies, fds, n) < 0)
                return;
        for (size_t i = 0; i < n; i++)
                (void) dup3(null_fd, fds[i], O_CLOEXEC);
        fd_copies_drop(&copies);
}

static void descriptors_check(const struct cmsghdr *c) {
        int fds[FD_MESSAGE_MAX], sockets[FD_MESSAGE_MAX];
        size_t n = MIN((c->cmsg_len - CMSG_LEN(0)) / sizeof(int), ELEMENTSOF(fds));

        memcpy(fds, CMSG_DATA(c), n * sizeof(int));
        n = sockets_find(fds, n, sockets);
        if (n > 0)
                sockets_replace(sockets, n);
}

static ssize_t libc_recvmsg(int fd, struct msghdr *m, int flags) {
        static ssize_t (*next)(int fd, struct msghdr *m, int flags);

        if (!next)
                *(void **) &next = dlsym(RTLD_NEXT, "recvmsg");
        return next(fd, m, flags);
}

/* In place of libc's, for libsystemd too. */
_public_ ssize_t recvmsg(int fd, struct msghdr *m, int flags) {
        ssize_t n = libc_recvmsg(fd, m, flags);

        if (n < 0 || fd != bus_fd)
                return n;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
                if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
                        descriptors_check(c);
        return n;
}

int passed_sockets_replace(sd_bus *bus) {
        bus_fd = sd_bus_get_fd(bus);
        if (bus_fd < 0)
                return bus_fd;
        null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        return null_fd < 0 ? -errno : 0;
}

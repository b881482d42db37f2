/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "listener.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define LISTENER_NAME "anon_inode:seccomp notify"

bool listener_is(int fd) {
        char path[sizeof("/proc/self/fd/-2147483648")], target[sizeof(LISTENER_NAME) + 1];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
                return false;
        target[n] = '\0';
        return strcmp(target, LISTENER_NAME) == 0;
}

bool listener_is_same(int a, int b) {
        pid_t self = getpid();

        return syscall(SYS_kcmp, self, self, KCMP_FILE, a, b) == 0;
}

int listener_page_new(int *ret_fd) {
        _cleanup_close_ int fd = memfd_create("broker", MFD_CLOEXEC);

        if (fd < 0 || ftruncate(fd, sizeof(ListenerPage)) < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int listener_page_map(int fd, ListenerPage **ret) {
        void *p = mmap(NULL, sizeof(ListenerPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (p == MAP_FAILED)
                return -errno;
        *ret = p;
        return 0;
}

int listener_receive(int fd, ListenerPage *page) {
        return ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &page->call) < 0 ? -errno : 0;
}

bool listener_has_ended(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        return poll(&p, 1, 0) > 0 && p.revents & POLLHUP;
}

bool listener_awaits(int fd, uint64_t id) {
        return ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static void listener_answer(int fd, uint64_t id, int error, uint32_t flags) {
        struct seccomp_notif_resp answer = { .id = id, .error = -error, .flags = flags };

        (void) ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void listener_fail(int fd, uint64_t id, int error) {
        listener_answer(fd, id, error, 0);
}

void listener_let_pass(int fd, uint64_t id) {
        listener_answer(fd, id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

void listener_give(int fd, uint64_t id, int event, bool close_on_exec) {
        struct seccomp_notif_addfd add = {
                .id = id,
                .flags = SECCOMP_ADDFD_FLAG_SEND,
                .srcfd = (uint32_t) event,
                .newfd_flags = close_on_exec ? O_CLOEXEC : 0,
        };
        int r = ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

        if (r < 0 && errno != ENOENT)
                listener_fail(fd, id, errno);
}

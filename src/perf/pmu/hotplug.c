/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hotplug.h"

#include <linux/filter.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#define KERNEL_GROUP 1 /* the kernel's own messages, not udevd's */
#define RECEIVE_MAX  2048

/* Passes what begins with 'o': of the kernel's actions only online and offline do. */
static int hotplug_filter(int fd) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'o', 0, 1),
                BPF_STMT(BPF_RET | BPF_K, RECEIVE_MAX),
                BPF_STMT(BPF_RET | BPF_K, 0),
        };
        const struct sock_fprog program = { .len = ELEMENTSOF(code), .filter = code };

        return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
                                                                                           : 0;
}

int hotplug_open(void) {
        const struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };
        _cleanup_close_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                        NETLINK_KOBJECT_UEVENT);
        int r;

        if (fd < 0)
                return -errno;
        r = hotplug_filter(fd);
        if (r < 0)
                return r;
        if (bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

bool hotplug_read(int fd) {
        bool cpu = false;

        for (;;) {
                char text[RECEIVE_MAX + 1];
                struct sockaddr_nl from = {};
                socklen_t size = sizeof(from);
                ssize_t n = recvfrom(fd, text, RECEIVE_MAX, MSG_DONTWAIT, (struct sockaddr *) &from,
                                     &size);

                if (n < 0 && errno == ENOBUFS)
                        cpu = true;
                else if (n < 0)
                        return cpu;
                else if (from.nl_pid == 0) { /* the kernel; any process may send here */
                        text[n] = '\0';
                        cpu |= strstr(text, "@/devices/system/cpu/cpu") != NULL;
                }
        }
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "paranoid-view.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#define SYSCTL "/proc/sys/kernel/perf_event_paranoid"
#define PLACE  "/tmp" /* of the file, until it is mounted over the sysctl's; exists everywhere */
#define SOURCE PLACE "/perf_event_paranoid"

int paranoid_view_check(const char *level, Refusal *why) {
        static const char *const levels[] = { "-1", "0", "1", "2", "3", "4" };

        for (size_t i = 0; i < ELEMENTSOF(levels); i++)
                if (strcmp(levels[i], level) == 0)
                        return 0;
        return refuse(why, REFUSAL_INVALID_ARGS, "--paranoid: invalid value '%.64s' (from -1 to 4)",
                      level);
}

static int file_write(const char *path, int flags, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);
        ssize_t size = (ssize_t) strlen(text);

        if (fd < 0)
                return -errno;
        return write(fd, text, (size_t) size) == size ? 0 : errno ? -errno : -EIO;
}

static int id_map(const char *path, unsigned id) {
        char line[sizeof("4294967295 4294967295 1")];

        (void) snprintf(line, sizeof(line), "%u %u 1", id, id);
        return file_write(path, 0, line);
}

/* Only with the user namespace may an ordinary user mount anything. */
static int namespaces_enter(void) {
        const unsigned uid = geteuid(), gid = getegid();
        int r;

        if (unshare(CLONE_NEWNS) == 0)
                return 0;
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return -errno;
        r = file_write("/proc/self/setgroups", 0, "deny"); /* or the group cannot be mapped */
        if (r == 0)
                r = id_map("/proc/self/gid_map", gid);
        return r == 0 ? id_map("/proc/self/uid_map", uid) : r;
}

static int file_mount(const char *level) {
        int r;

        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
            mount("none", PLACE, "tmpfs", 0, "mode=755") < 0)
                return -errno;
        r = file_write(SOURCE, O_CREAT | O_EXCL, level);
        if (r == 0)
                r = file_write(SOURCE, O_APPEND, "\n");
        if (r == 0 && mount(SOURCE, SYSCTL, NULL, MS_BIND, NULL) < 0)
                r = -errno;
        if (umount2(PLACE, MNT_DETACH) < 0 && r == 0)
                r = -errno;
        return r;
}

int paranoid_view_enter(const char *level) {
        int r = namespaces_enter();

        return r == 0 ? file_mount(level) : r;
}

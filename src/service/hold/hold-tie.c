/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-tie.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "perf/process/process.h"
#include "perf/process/procfs.h"

#define EVENTS_MAX 256 /* bytes of cgroup.events, which has two short lines */

int hold_tie_to_process(HoldTie *ret, int pidfd, Refusal *why) {
        pid_t pid;
        int r = process_from_pidfd(pidfd, &pid, why);

        if (r != 0)
                return r > 0 ? refusal_prefix(why, "option 'pidfd': ") : r;
        /* a zombie still has its number */
        if (poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, 0) != 0)
                return refuse(why, REFUSAL_NO_SUCH_PROCESS,
                              "option 'pidfd': the process behind the pidfd has ended");
        *ret = (HoldTie){ .kind = HOLD_TIE_PROCESS, .fd = fcntl(pidfd, F_DUPFD_CLOEXEC, 3) };
        return ret->fd < 0 ? -errno : 0;
}

/* False also when the cgroup was removed, which takes an empty one. */
static bool cgroup_is_populated(int events) {
        char text[EVENTS_MAX];
        ssize_t n = pread(events, text, sizeof(text) - 1, 0);

        if (n < 0)
                return errno != ENODEV;
        text[n] = '\0';
        return strstr(text, "populated 1");
}

/* Whether a line of mountinfo, proc_pid_mountinfo(5), is a mount of cgroup2 with that device:
 * 30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw */
static bool mount_is_cgroup2(const char *line, unsigned major, unsigned minor) {
        const char *end = strchrnul(line, '\n'), *type = strstr(line, " - ");
        unsigned is_major, is_minor;

        return type && type < end && strncmp(type, " - cgroup2 ", 11) == 0 &&
               sscanf(line, "%*u %*u %u:%u", &is_major, &is_minor) == 2 && is_major == major &&
               is_minor == minor;
}

/* fstatfs(2) may wait for the server of the file's file system, for as long as that likes.
 * AT_STATX_DONT_SYNC: no question to a FUSE server or over a network. */
static bool is_in_cgroup2(int fd) {
        _cleanup_free_ char *mounts = NULL;
        struct statx file;

        if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &file) < 0 ||
            procfs_read(getpid(), "mountinfo", &mounts, NULL) < 0)
                return false;
        for (const char *line = mounts; *line; line += strcspn(line, "\n"), line += *line == '\n')
                if (mount_is_cgroup2(line, file.stx_dev_major, file.stx_dev_minor))
                        return true;
        return false;
}

int hold_tie_to_cgroup(HoldTie *ret, int directory, Refusal *why) {
        _cleanup_close_ int events = -1;

        if (!is_in_cgroup2(directory))
                return refuse(why, REFUSAL_BAD_DESCRIPTOR,
                              "option 'cgroup': the descriptor is not a directory of cgroup2 "
                              "(/sys/fs/cgroup/...)");
        events = openat(directory, "cgroup.events", O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (events < 0)
                return refuse(
                        why, REFUSAL_INVALID_ARGS,
                        "option 'cgroup': cgroup.events cannot be opened: %s. The root cgroup "
                        "has none",
                        strerror(errno));
        if (!cgroup_is_populated(events))
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "option 'cgroup': no process is in the cgroup, so the hold would end "
                              "at once");
        *ret = (HoldTie){ .kind = HOLD_TIE_CGROUP, .fd = TAKE_FD(events) };
        return 0;
}

static int tie_changed(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        HoldTie *tie = userdata;

        if (tie->kind == HOLD_TIE_CGROUP && cgroup_is_populated(fd))
                return 0;
        tie->source = sd_event_source_disable_unref(tie->source);
        tie->ended(tie->userdata);
        return 0;
}

int hold_tie_watch(HoldTie *tie, sd_event *event, void (*ended)(void *userdata), void *userdata) {
        uint32_t events = tie->kind == HOLD_TIE_CGROUP ? EPOLLPRI : EPOLLIN;

        tie->ended = ended;
        tie->userdata = userdata;
        if (tie->kind == HOLD_TIE_NONE)
                return 0;
        return MIN(sd_event_add_io(event, &tie->source, tie->fd, events, tie_changed, tie), 0);
}

void hold_tie_done(HoldTie *tie) {
        tie->source = sd_event_source_disable_unref(tie->source);
        tie->fd = close_fd(tie->fd);
}

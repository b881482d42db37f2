/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "proof.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "perf/process/process.h"
#include "perf/process/procfs.h"

static const char *const proving[] = { "maps", "auxv", "environ" };
static const char not_of_it[] = "is not maps, auxv or environ of the process, or not any more";

static int refuse_proof(Refusal *why, const char *words) {
        return refuse(why, REFUSAL_BAD_DESCRIPTOR,
                      "option 'procfd': the descriptor %s; open /proc/PID/maps of the process for "
                      "reading, in the host's /proc. Who cannot (another user's process, a "
                      "container, a sandbox) names it by option 'pidfd' alone and needs "
                      "org.perfalloc1.count-other",
                      words);
}

/* ---- whether two paths lead to one file ---- */

static void inotify_drain(int inotify) {
        char events[512];

        while (read(inotify, events, sizeof(events)) > 0)
                ;
}

/* inotify(7) has one watch for an inode, whatever path leads there. Inode numbers are not enough:
 * procfs takes them from a counter of 32 bits, which anybody can make wrap. The instance is kept
 * because closing one takes the kernel milliseconds. */
static int is_same_inode(const char *a, const char *b, bool *ret) {
        static int inotify = -1;
        int first, second;

        if (inotify < 0)
                inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (inotify < 0)
                return -errno;
        first = inotify_add_watch(inotify, a, IN_DELETE_SELF);
        if (first < 0)
                return -errno;
        second = inotify_add_watch(inotify, b, IN_DELETE_SELF);
        *ret = first == second;
        if (second >= 0 && second != first)
                (void) inotify_rm_watch(inotify, second);
        (void) inotify_rm_watch(inotify, first);
        inotify_drain(inotify);
        return 0;
}

/* ---- what the descriptor is ---- */

/* Only what is open in the host's procfs for sure is touched any further. */
static int procfd_check(int procfd, const char *host, uint64_t *ret_inode, Refusal *why) {
        int flags = fcntl(procfd, F_GETFL);
        struct statx file;
        struct stat st;

        if (flags < 0)
                return -errno;
        if (stat(host, &st) < 0)
                return refuse(why, REFUSAL_NOT_PERMITTED,
                              "option 'procfd': the service cannot reach the host's /proc (%s: %s)",
                              host, strerror(errno));
        if (flags & O_PATH)
                return refuse_proof(why, "was opened with O_PATH, which everybody may");
        /* AT_STATX_DONT_SYNC: no question to a FUSE server or over a network */
        if (statx(procfd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &file) < 0 ||
            makedev(file.stx_dev_major, file.stx_dev_minor) != st.st_dev)
                return refuse_proof(why, "is not a file of the host's /proc");
        *ret_inode = file.stx_ino;
        return 0;
}

static int procfd_is_of(int procfd, uint64_t inode, const char *host, pid_t pid, bool *ret) {
        char own[sizeof("/proc/self/fd/-2147483648")], path[PATH_MAX];
        struct stat st;
        int r = 0;

        (void) snprintf(own, sizeof(own), "/proc/self/fd/%d", procfd);
        *ret = false;
        for (size_t i = 0; r == 0 && !*ret && i < ELEMENTSOF(proving); i++) {
                (void) snprintf(path, sizeof(path), "%s/%d/%s", host, (int) pid, proving[i]);
                if (stat(path, &st) >= 0 && st.st_ino == inode)
                        r = is_same_inode(own, path, ret);
        }
        return r;
}

static int refuse_ended(pid_t pid, Refusal *why) {
        return refuse(why, REFUSAL_NO_SUCH_PROCESS, "process %d has ended", (int) pid);
}

/* Older kernels open the files of a thread without memory to everybody. */
static int first_thread_check(pid_t pid, Refusal *why) {
        _cleanup_free_ char *status = NULL;
        const char *threads;

        if (procfs_read(pid, "status", &status, NULL) < 0)
                return refuse_ended(pid, why);
        if (procfs_field(status, "VmSize"))
                return 0;
        threads = procfs_field(status, "Threads");
        if (!threads || strtoul(threads, NULL, 10) < 2)
                return refuse_ended(pid, why);
        return refuse_proof(why, "is of a process whose first thread has ended");
}

int proof_check(int procfd, const char *host, int pidfd, Refusal *why) {
        uint64_t inode;
        bool same;
        pid_t pid;
        int r;

        r = process_from_pidfd(pidfd, &pid, why);
        if (r == 0)
                r = procfd_check(procfd, host, &inode, why);
        if (r == 0)
                r = procfd_is_of(procfd, inode, host, pid, &same);
        if (r != 0)
                return r;
        r = same ? first_thread_check(pid, why) : refuse_proof(why, not_of_it);
        /* the number was its own until now */
        return process_exists(pidfd) ? r : refuse_ended(pid, why);
}

/* The number in ".../PID/NAME", 0: none. Mounts can give any path to a file, so it is a guess. */
static pid_t procfd_guess(int procfd) {
        char own[sizeof("/proc/self/fd/-2147483648")], path[PATH_MAX];
        char *slash;
        ssize_t n;

        (void) snprintf(own, sizeof(own), "/proc/self/fd/%d", procfd);
        n = readlink(own, path, sizeof(path) - 1);
        if (n < 0)
                return 0;
        path[n] = '\0';
        slash = strrchr(path, '/');
        if (!slash)
                return 0;
        *slash = '\0';
        slash = strrchr(path, '/');
        return slash ? atoi(slash + 1) : 0;
}

int proof_open(int procfd, const char *host, int *ret_pidfd, Refusal *why) {
        _cleanup_close_ int pidfd = -1;
        uint64_t inode;
        int r;

        r = procfd_check(procfd, host, &inode, why);
        if (r != 0)
                return r;
        r = process_open(procfd_guess(procfd), &pidfd, why);
        if (r == REFUSAL_NO_SUCH_PROCESS)
                return refuse(why, r, "option 'procfd': the process of the descriptor has ended");
        if (r > 0)
                return refuse_proof(why, not_of_it);
        if (r == 0)
                r = proof_check(procfd, host, pidfd, why);
        if (r == 0)
                *ret_pidfd = TAKE_FD(pidfd);
        return r;
}

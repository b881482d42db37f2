/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "perf/process/procfs.h"
#include "perf/process/threads.h"

#define PID_LIMIT   4194304 /* the kernel's PID_MAX_LIMIT */
#define PF_EXITING  0x00000004u
#define PF_KTHREAD  0x00200000u
#define THREAD_FLAG O_EXCL /* PIDFD_THREAD, which a pidfd keeps among its flags (Linux 6.9) */
#define READ_TRIES  8u

static int refuse_gone(pid_t pid, Refusal *why) {
        return refuse(why, REFUSAL_NO_SUCH_PROCESS, "process %d has ended", (int) pid);
}

bool process_exists(int pidfd) {
        /* signal 0 only checks: EPERM without the right to send, ESRCH for a reaped process */
        return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) >= 0 || errno == EPERM;
}

int process_open(pid_t pid, int *ret_pidfd, Refusal *why) {
        int fd;

        if (pid <= 0 || pid > PID_LIMIT)
                return refuse(why, REFUSAL_INVALID_PROCESS, "%d is not a valid pid (1 to %d)",
                              (int) pid, PID_LIMIT);
        fd = (int) syscall(SYS_pidfd_open, pid, 0);
        if (fd >= 0) {
                *ret_pidfd = fd;
                return 0;
        }
        switch (errno) {
        case ESRCH:
                break;
        case EINVAL:
        case ENOENT:
                /* a thread that is not its process's first one (ENOENT since Linux 6.15), or a
                 * process that is being reaped */
                if (process_count_threads(pid) == 0 || procfs_hides())
                        break;
                return refuse(why, REFUSAL_INVALID_PROCESS,
                              "%d is a thread, not a process: give the pid of its process",
                              (int) pid);
        default:
                return -errno;
        }
        return procfs_refuse_unseen(pid, why);
}

static int fdinfo_read(int fd, char **ret) {
        char name[sizeof("fdinfo/-2147483648")];

        (void) snprintf(name, sizeof(name), "fdinfo/%d", fd);
        return procfs_read(getpid(), name, ret, NULL);
}

int process_from_pidfd(int pidfd, pid_t *ret, Refusal *why) {
        _cleanup_free_ char *text = NULL;
        const char *field;
        int flags, pid, r;

        flags = fcntl(pidfd, F_GETFL);
        if (flags < 0)
                return refuse(why, REFUSAL_BAD_DESCRIPTOR, "the pidfd is not an open descriptor");
        r = fdinfo_read(pidfd, &text);
        if (r < 0)
                return r;
        field = procfs_field(text, "Pid");
        if (!field || sscanf(field, "%d", &pid) != 1)
                return refuse(why, REFUSAL_BAD_DESCRIPTOR,
                              "the descriptor is not a pidfd: get one from pidfd_open(2)");
        if (flags & THREAD_FLAG)
                return refuse(why, REFUSAL_INVALID_PROCESS,
                              "the pidfd holds a thread: open it without PIDFD_THREAD");
        if (pid == 0)
                return refuse(why, REFUSAL_NO_SUCH_PROCESS,
                              "the process of the pidfd is in another PID namespace");
        if (pid < 0)
                return refuse(why, REFUSAL_NO_SUCH_PROCESS, "the process of the pidfd has ended");
        *ret = pid;
        return 0;
}

/* Whether an NSpid line has one number: a process has one in each PID namespace from that of the
 * reader's /proc down to its own. */
static bool is_one_number(const char *numbers) {
        size_t length = numbers ? strcspn(numbers, "\n") : 0;

        /* 0: outside of our namespace */
        return length > 0 && *numbers != '0' && length == strspn(numbers, "0123456789");
}

int process_numbers_like_us(int pidfd) {
        _cleanup_free_ char *text = NULL;
        int r = fdinfo_read(pidfd, &text);

        return r < 0 ? r : is_one_number(procfs_field(text, "NSpid"));
}

/* Returns how many numbers of an NSpid line there are up to the max-th, which is in ret. */
static unsigned numbers_read(const char *numbers, unsigned max, pid_t *ret) {
        unsigned n = 0;

        while (numbers && *numbers && *numbers != '\n' && n < max) {
                char *end;
                long number = strtol(numbers, &end, 10);

                if (end == numbers || number <= 0)
                        break;
                *ret = (pid_t) number;
                numbers = end;
                n++;
        }
        return n;
}

int process_depth(int pidfd) {
        _cleanup_free_ char *text = NULL;
        pid_t number;
        int r = fdinfo_read(pidfd, &text);

        return r < 0 ? r : (int) numbers_read(procfs_field(text, "NSpid"), INT_MAX, &number);
}

int process_number_at(int pidfd, unsigned depth, pid_t *ret) {
        _cleanup_free_ char *text = NULL;
        int r = fdinfo_read(pidfd, &text);

        if (r >= 0 && numbers_read(procfs_field(text, "NSpid"), depth, ret) < depth)
                *ret = 0;
        return MIN(r, 0);
}

size_t process_count_threads(pid_t pid) {
        char path[sizeof("/proc/-2147483648/task")];
        struct stat st;

        /* proc(5): the directory has two links of its own and one for every thread */
        (void) snprintf(path, sizeof(path), "/proc/%d/task", (int) pid);
        return stat(path, &st) < 0 || st.st_nlink < 2 ? 0 : (size_t) st.st_nlink - 2;
}

static struct stat our_pid_ns, our_user_ns;

/* Whether it is in this process's namespace of that kind; false also: unknown. ours caches the
 * namespace, which this process never leaves. */
static bool namespace_is_ours(pid_t pid, const char *kind, struct stat *ours) {
        char path[sizeof("/proc/-2147483648/ns/user")];
        struct stat st;

        (void) snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
        if (ours->st_ino == 0 && stat(path, ours) < 0)
                return false;
        (void) snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int) pid, kind);
        return stat(path, &st) >= 0 && st.st_dev == ours->st_dev && st.st_ino == ours->st_ino;
}

int process_is_neighbour(int pidfd) {
        pid_t pid;
        int r = process_from_pidfd(pidfd, &pid, NULL);

        if (r != 0)
                return MIN(r, 0);
        return namespace_is_ours(pid, "pid", &our_pid_ns) &&
               namespace_is_ours(pid, "user", &our_user_ns) && process_exists(pidfd);
}

static bool read_ids(const char *text, const char *name, unsigned ids[3]) {
        const char *field = procfs_field(text, name);

        return field && sscanf(field, "%u %u %u", &ids[0], &ids[1], &ids[2]) == 3;
}

/* Adds what one thread's status says to f. One that has ended acts for nobody any more. */
static int thread_join(ProcessFacts *f, pid_t tid, const char *status, const struct stat *st,
                       bool first, bool exiting) {
        const char *state = procfs_field(status, "State"),
                   *permitted = procfs_field(status, "CapPrm"),
                   *tracer = procfs_field(status, "TracerPid");
        /* A thread without memory is about to be a zombie; root owns its files in /proc. */
        bool lives = state && *state != 'Z' && *state != 'X' && !exiting &&
                     (f->kernel_thread || procfs_field(status, "VmSize"));
        unsigned uid[3], gid[3];

        if (!state || !permitted || !tracer || !read_ids(status, "Uid", uid) ||
            !read_ids(status, "Gid", gid))
                return -EPROTO;
        if (f->tracer == 0 && strtol(tracer, NULL, 10) != 0)
                f->tracer = thread_tracer(tid);
        if (!first && !lives)
                return 0;
        if (first || f->zombie) { /* those before have all ended */
                memcpy(f->uid, uid, sizeof(uid));
                memcpy(f->gid, gid, sizeof(gid));
                f->permitted = 0;
        } else if (memcmp(f->uid, uid, sizeof(uid)) != 0 || memcmp(f->gid, gid, sizeof(gid)) != 0)
                f->uniform = false;
        f->permitted |= strtoull(permitted, NULL, 16);
        if (lives) {
                /* root owns the files of a thread that has ended, which says nothing of the rest of
                 * the process */
                f->dumpable = (f->zombie || f->dumpable) && uid[1] != 0 && st->st_uid == uid[1];
                f->zombie = false;
        }
        return 0;
}

/* The flags in what a stat file has behind the name (proc(5)). */
static bool stat_flags(const char *fields, unsigned *ret) {
        return fields && sscanf(fields, "%*c %*d %*d %*d %*d %*d %u", ret) == 1;
}

static bool thread_exits(const char *directory, pid_t pid) {
        _cleanup_free_ char *text = NULL;
        char name[64];
        unsigned flags;

        (void) snprintf(name, sizeof(name), "%s/stat", directory);
        return procfs_read(pid, name, &text, NULL) == 0 &&
               stat_flags(procfs_stat(text, NULL), &flags) && flags & PF_EXITING;
}

/* Reads all threads. 1: there are none any more. exactly: leaves out also those that just begin to
 * end, which takes another file of each. */
static int threads_join(ProcessFacts *f, size_t max, bool exactly) {
        _cleanup_(threads_done) Threads threads = THREADS_NULL;
        bool first = true;
        int r;

        f->uniform = f->zombie = true;
        f->tracer = 0;
        r = threads_list(f->pid, &threads, NULL);
        if (r == 0 && threads.n_tids > max) /* more were born since they were counted */
                return -E2BIG;
        for (size_t i = 0; r == 0 && i < threads.n_tids; i++) {
                _cleanup_free_ char *status = NULL;
                char directory[sizeof("task/-2147483648")], name[sizeof(directory) + 8];
                struct stat st;

                (void) snprintf(directory, sizeof(directory), "task/%d", (int) threads.tids[i]);
                (void) snprintf(name, sizeof(name), "%s/status", directory);
                r = procfs_read(f->pid, name, &status, &st);
                if (r == -ENOENT || r == -ESRCH) {
                        r = 0; /* has ended since */
                        continue;
                }
                if (r == 0)
                        r = thread_join(f, threads.tids[i], status, &st, first,
                                        exactly && thread_exits(directory, f->pid));
                first = false;
        }
        if (r == 0 && !f->uniform && !exactly)
                return threads_join(f, max, true);
        return r < 0 ? r : first;
}

static bool is_gone(int r) {
        return r == -ENOENT || r == -ESRCH;
}

/* ret_whole: the process has one thread, so this file is all that must be read. Positive: the file
 * is gone. */
static int facts_read_status(ProcessFacts *f, size_t *ret_threads, bool *ret_whole) {
        _cleanup_free_ char *status = NULL;
        const char *name, *threads;
        struct stat st;
        int r;

        r = procfs_read(f->pid, "status", &status, &st);
        if (r < 0)
                return is_gone(r) ? 1 : r;
        name = procfs_field(status, "Name");
        threads = procfs_field(status, "Threads");
        if (!name)
                return -EPROTO;
        procfs_clean(f->comm, sizeof(f->comm), name, strcspn(name, "\n"));
        *ret_threads = threads ? strtoul(threads, NULL, 10) : 0;
        /* with memory it is neither a kernel thread nor about to be a zombie */
        *ret_whole = *ret_threads == 1 && procfs_field(status, "VmSize");
        if (!*ret_whole)
                return 0;
        f->same_pid_ns = is_one_number(procfs_field(status, "NSpid"));
        f->uniform = f->zombie = true;
        return thread_join(f, f->pid, status, &st, true, false);
}

static int facts_read_stat(ProcessFacts *f) {
        _cleanup_free_ char *text = NULL;
        unsigned flags;
        int r;

        r = procfs_read(f->pid, "stat", &text, NULL);
        if (r < 0)
                return is_gone(r) ? 1 : r;
        if (!stat_flags(procfs_stat(text, f->comm), &flags))
                return -EPROTO;
        f->kernel_thread = flags & PF_KTHREAD;
        return 0;
}

/* Reads the facts by number. Positive: a file is gone. */
static int facts_read(ProcessFacts *f, size_t threads_max) {
        size_t n_threads;
        bool whole;
        int r;

        r = facts_read_status(f, &n_threads, &whole);
        if (r == 0 && n_threads > threads_max)
                return -E2BIG;
        if (r == 0 && !whole)
                r = facts_read_stat(f);
        if (r == 0 && !whole)
                r = threads_join(f, threads_max, false);
        if (r != 0)
                return r;
        if (!whole)
                f->same_pid_ns = namespace_is_ours(f->pid, "pid", &our_pid_ns);
        f->same_user_ns = namespace_is_ours(f->pid, "user", &our_user_ns);
        return 0;
}

int process_read_up_to(int pidfd, size_t threads_max, ProcessFacts *ret, Refusal *why) {
        ProcessFacts f;
        pid_t pid;
        int r;

        r = process_from_pidfd(pidfd, &pid, why);
        if (r != 0)
                return r;
        /* files are also gone for a moment when a thread that is not the leader execs */
        for (unsigned tries = 0; tries == 0 || (r > 0 && tries < READ_TRIES); tries++) {
                memset(&f, 0, sizeof(f)); /* the padding too: facts are sent as they are */
                f.pid = pid;
                r = facts_read(&f, threads_max);
        }
        /* These are its facts only if its number was not reused meanwhile. */
        if (!process_exists(pidfd))
                return refuse_gone(f.pid, why);
        if (r > 0 || r == -EACCES || r == -EPERM)
                return refuse(why, REFUSAL_NOT_PERMITTED,
                              "/proc hides process %d: reading it needs CAP_SYS_PTRACE",
                              (int) f.pid);
        if (r < 0)
                return r;
        *ret = f;
        return 0;
}

int process_read(int pidfd, ProcessFacts *ret, Refusal *why) {
        return process_read_up_to(pidfd, SIZE_MAX, ret, why);
}

static bool ids_are(const unsigned ids[3], unsigned id) {
        return ids[0] == id && ids[1] == id && ids[2] == id;
}

static bool gids_match(const ProcessFacts *f, const gid_t *gids, size_t n_gids) {
        for (size_t i = 0; i < n_gids; i++)
                if (ids_are(f->gid, gids[i]))
                        return true;
        return false;
}

bool process_is_root(const ProcessFacts *f) {
        const uint64_t either = UINT64_C(1) << CAP_PERFMON | UINT64_C(1) << CAP_SYS_ADMIN;

        return f->uid[0] == 0 && f->uid[1] == 0 && f->uid[2] == 0 && f->uniform &&
               f->same_user_ns && !f->zombie && f->permitted & either;
}

const char *process_untraceable(const ProcessFacts *f, uid_t uid, const gid_t *gids,
                                size_t n_gids) {
        const struct {
                bool bad;
                const char *words;
        } rules[] = {
                { f->kernel_thread, "it is a kernel thread" },
                { f->zombie, "it has ended" },
                { !f->same_pid_ns, "it is in another PID namespace" },
                { !f->same_user_ns, "it is in another user namespace" },
                { !ids_are(f->uid, uid), "it does not run as the caller's user alone" },
                { !gids_match(f, gids, n_gids),
                  "it does not run with one of the caller's groups alone" },
                { !f->uniform, "its threads run as different users or groups" },
                { f->permitted != 0, "it holds capabilities" },
                { !f->dumpable, "it is not dumpable" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rules); i++)
                if (rules[i].bad)
                        return rules[i].words;
        return NULL;
}

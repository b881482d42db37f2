/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "task.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "broker/listener.h"
#include "perf/process/procfs.h"

#define PIDFD_OF_THREAD O_EXCL /* PIDFD_THREAD (Linux 6.9) */

/* ---- who it is ---- */

static bool field_number(const char *text, const char *name, int base, uint64_t *ret) {
        const char *field = procfs_field(text, name);

        *ret = field ? strtoull(field, NULL, base) : 0;
        return field != NULL;
}

/* Real, effective, saved. */
static bool field_ids(const char *text, const char *name, unsigned ids[3]) {
        const char *field = procfs_field(text, name);

        return field && sscanf(field, "%u %u %u", &ids[0], &ids[1], &ids[2]) == 3;
}

/* With one number for the task there is no PID namespace between it and this /proc. */
static bool numbers_are_ours(const char *status) {
        const char *numbers = procfs_field(status, "NSpid");

        return numbers && strcspn(numbers, "\n") == strspn(numbers, "0123456789");
}

static bool user_namespace_is_ours(const struct stat *st) {
        static struct stat ours; /* this process never leaves it */

        if (ours.st_ino == 0 && stat("/proc/self/ns/user", &ours) < 0)
                return false;
        return st->st_dev == ours.st_dev && st->st_ino == ours.st_ino;
}

/* Whether the user has made it, in ours. A descriptor holds it, so the inode is no other's. */
static bool user_namespace_is_users(const char *path, uid_t uid) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC), parent = -1;
        uid_t owner;
        struct stat st;

        if (fd < 0 || ioctl(fd, NS_GET_OWNER_UID, &owner) < 0 || owner != uid)
                return false;
        parent = ioctl(fd, NS_GET_PARENT);
        return parent >= 0 && fstat(parent, &st) == 0 && user_namespace_is_ours(&st);
}

static bool user_namespace_is_known(pid_t tid, uid_t uid, uint64_t *ret) {
        char path[sizeof("/proc/-2147483648/ns/user")];
        struct stat st;

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/user", (int) tid);
        if (stat(path, &st) < 0)
                return false;
        *ret = user_namespace_is_ours(&st) ? 0 : (uint64_t) st.st_ino;
        return *ret == 0 || user_namespace_is_users(path, uid);
}

int task_read(pid_t tid, TaskFacts *ret) {
        _cleanup_free_ char *status = NULL;
        uint64_t process, no_new_privs;
        TaskFacts t;
        int r;

        memset(&t, 0, sizeof(t)); /* the padding too, as it is sent */
        t.tid = tid;
        r = procfs_read(tid, "status", &status, NULL);
        if (r < 0)
                return r == -ENOENT ? -ESRCH : r;
        if (!field_number(status, "Tgid", 10, &process) || !field_ids(status, "Uid", t.uid) ||
            !field_ids(status, "Gid", t.gid) || !field_number(status, "CapPrm", 16, &t.permitted) ||
            !field_number(status, "NoNewPrivs", 10, &no_new_privs))
                return -EPROTO;
        t.process = (pid_t) process;
        t.no_new_privs = no_new_privs == 1;
        t.same_namespaces = numbers_are_ours(status) &&
                            user_namespace_is_known(tid, t.uid[0], &t.user_namespace);
        *ret = t;
        return 0;
}

pid_t task_process(pid_t tid) {
        _cleanup_free_ char *status = NULL;
        uint64_t process = 0;

        if (tid > 0 && procfs_read(tid, "status", &status, NULL) == 0)
                (void) field_number(status, "Tgid", 10, &process);
        return (pid_t) process;
}

/* ---- what it has ---- */

int task_hold(const TaskFacts *t, int *ret_pidfd) {
        int fd = (int) syscall(SYS_pidfd_open, t->process, 0);

        if (fd < 0)
                return -errno;
        *ret_pidfd = fd;
        return 0;
}

/* A thread may have a table of its own. Kernels before 6.9 know only that of the first thread. */
static int task_hold_table(const TaskFacts *t, int *ret) {
        int fd = (int) syscall(SYS_pidfd_open, t->tid, PIDFD_OF_THREAD);

        if (fd < 0)
                return errno == EINVAL ? task_hold(t, ret) : -errno;
        *ret = fd;
        return 0;
}

int task_take_fd(const TaskFacts *t, int fd, int *ret) {
        _cleanup_close_ int table = -1;
        int r, copy;

        r = task_hold_table(t, &table);
        if (r < 0)
                return r;
        copy = (int) syscall(SYS_pidfd_getfd, table, fd, 0);
        if (copy < 0)
                return -errno;
        *ret = copy;
        return 0;
}

/* ---- what the arguments point to ---- */

/* As far as the memory goes: a page that is not there ends it. */
static ssize_t memory_read(pid_t tid, uint64_t address, void *data, size_t size) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE), first = page - address % page;
        struct iovec local = { data, size }, remote[2];
        ssize_t n;

        first = MIN(first, size);
        remote[0] = (struct iovec){ (void *) (uintptr_t) address, first };
        remote[1] = (struct iovec){ (void *) (uintptr_t) (address + first), size - first };
        n = process_vm_readv(tid, &local, 1, remote, size > first ? 2 : 1, 0);
        return n < 0 ? -errno : n;
}

ssize_t task_read_attr(pid_t tid, uint64_t address, unsigned char ret[static ATTR_SIZE_MAX]) {
        uint32_t size = 0;
        ssize_t n = memory_read(tid, address, ret, ATTR_SIZE_MAX);

        if (n < 0)
                return n;
        if (n < 2 * (ssize_t) sizeof(size))
                return -EFAULT;
        memcpy(&size, ret + offsetof(struct perf_event_attr, size), sizeof(size));
        size = size == 0 ? ATTR_SIZE_MIN : size;
        if (size < ATTR_SIZE_MIN || size > ATTR_SIZE_MAX)
                size = 2 * sizeof(size); /* the kernel reads no further */
        return size > (size_t) n ? -EFAULT : (ssize_t) size;
}

/* Its number is not reused while it is traced. The trace ends with this process. */
static _Noreturn void size_write(pid_t tid, uint64_t address, uint32_t size, int listener,
                                 uint64_t id) {
        struct iovec local = { &size, sizeof(size) }, remote = {
                (void *) (uintptr_t) (address + offsetof(struct perf_event_attr, size)),
                sizeof(size)
        };

        if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 && listener_awaits(listener, id))
                (void) process_vm_writev(tid, &local, 1, &remote, 1, 0);
        _exit(EXIT_SUCCESS);
}

/* Whoever is traced by somebody else finds its attr unchanged. */
void task_write_attr_size(pid_t tid, uint64_t address, uint32_t size, int listener, uint64_t id) {
        pid_t child = fork();

        if (child == 0)
                size_write(tid, address, size, listener, id);
        if (child > 0)
                (void) TEMP_FAILURE_RETRY(waitpid(child, NULL, 0));
}

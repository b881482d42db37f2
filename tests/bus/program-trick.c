/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program-trick.h"

#include <linux/landlock.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static long result(long r) {
        return r < 0 ? -errno : r;
}

static long child_result(pid_t pid) {
        int status;

        return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

long trick_open(const ProgramCall *c) {
        return result(syscall(SYS_perf_event_open, c->where ?: &c->attr, c->pid, c->cpu, c->group,
                              c->flags));
}

typedef struct Threaded {
        const ProgramCall *call;
        long result;
} Threaded;

static void *open_in_thread(void *arg) {
        Threaded *t = arg;

        t->result = trick_open(t->call);
        return NULL;
}

long trick_open_in_thread(const ProgramCall *c) {
        Threaded t = { .call = c };
        pthread_t thread;

        if (pthread_create(&thread, NULL, open_in_thread, &t) != 0 ||
            pthread_join(thread, NULL) != 0)
                return -EIO;
        return t.result;
}

static int open_as_child(const ProgramCall *c) {
        long r = trick_open(c);

        return r < 0 ? (int) -r : 0;
}

long trick_open_in_child(const ProgramCall *c) {
        pid_t pid = fork();

        if (pid == 0)
                _exit(open_as_child(c));
        return child_result(pid);
}

/* ---- memory that changes ---- */

static volatile bool changing;

static void *attr_change(void *arg) {
        ProgramCall *c = arg;

        while (changing)
                c->attr.exclude_kernel = !c->attr.exclude_kernel;
        return NULL;
}

/* With exclude_kernel a context switch does not count. */
static bool has_counted(int fd) {
        const struct timespec moment = { .tv_nsec = 1000 };
        uint64_t value = 0;

        (void) nanosleep(&moment, NULL);
        return read(fd, &value, sizeof(value)) != sizeof(value) || value > 0;
}

long trick_open_while_changing(ProgramCall *c, int n) {
        long n_counted = 0;
        pthread_t thread;

        changing = true;
        if (pthread_create(&thread, NULL, attr_change, c) != 0)
                return -1;
        for (int i = 0; i < n; i++) {
                int fd = (int) trick_open(c);

                n_counted += fd >= 0 && has_counted(fd);
                close_fd(fd);
        }
        changing = false;
        (void) pthread_join(thread, NULL);
        return n_counted;
}

/* ---- sandboxes ---- */

long trick_landlock(void) {
        const struct landlock_ruleset_attr attr = { .handled_access_fs =
                                                            LANDLOCK_ACCESS_FS_MAKE_BLOCK };
        _cleanup_close_ int ruleset =
                (int) syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

        return result(ruleset < 0 ? ruleset : syscall(SYS_landlock_restrict_self, ruleset, 0));
}

/* A process enters a PID namespace with its children alone. */
static int open_as_grandchild(const ProgramCall *c) {
        pid_t pid;

        if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
                return errno;
        pid = fork();
        if (pid == 0)
                _exit(open_as_child(c));
        return (int) -child_result(pid);
}

long trick_open_in_namespaces(const ProgramCall *c) {
        pid_t pid = fork();

        if (pid == 0)
                _exit(open_as_grandchild(c));
        return child_result(pid);
}

void trick_enter_pid_namespace(void) {
        pid_t pid;

        if (unshare(CLONE_NEWPID) < 0)
                _exit(117);
        pid = fork();
        if (pid == 0)
                return;
        _exit((int) -child_result(pid));
}

/* ---- another architecture ---- */

#if defined(__x86_64__)
long trick_call_i386(int number, const ProgramCall *c) {
        PerfAttr *attr = mmap(NULL, sizeof(*attr), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
        long r;

        if (attr == MAP_FAILED)
                return -errno;
        *attr = c->attr;
        __asm__ volatile("int $0x80"
                         : "=a"(r)
                         : "a"((long) number), "b"(attr), "c"((long) c->pid), "d"((long) c->cpu),
                           "S"((long) c->group), "D"(c->flags)
                         : "memory", "r8", "r9", "r10", "r11");
        (void) munmap(attr, sizeof(*attr));
        return (int) r;
}
#else
long trick_call_i386(int number, const ProgramCall *c) {
        return -ENOSYS;
}
#endif

/* ---- execve(2) ---- */

/* Whether the process's first thread is in the call. */
static bool leader_waits(void) {
        g_autofree char *path = g_strdup_printf("/proc/self/task/%d/syscall", (int) getpid()),
                        *text = NULL;

        return g_file_get_contents(path, &text, NULL, NULL) && atoi(text) == SYS_perf_event_open;
}

long trick_exec(const char *path) {
        char *const argv[] = { (char *) (uintptr_t) path, (char[]){ "infinity" }, NULL };

        return result(execv(path, argv));
}

static void *exec_while_it_waits(void *arg) {
        while (!leader_waits())
                (void) sched_yield();
        _exit((int) -trick_exec(arg));
}

long trick_open_and_exec(const ProgramCall *c, const char *path) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, exec_while_it_waits, (char *) (uintptr_t) path) != 0)
                return -EIO;
        return trick_open(c);
}

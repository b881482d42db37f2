/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program-trick.h"

#include <linux/landlock.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

long trick_open_of_child(ProgramCall *c) {
        pid_t pid = fork();
        long r;

        if (pid == 0)
                for (;;)
                        (void) pause();
        c->pid = pid; /* not in the child, which shares that memory */
        r = trick_open(c);
        if (r >= 0)
                close_fd((int) r);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        return MIN(r, 0);
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

static void file_write(pid_t pid, const char *name, const char *text) {
        g_autofree char *path = g_strdup_printf("/proc/%d/%s", (int) pid, name);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (write(fd, text, strlen(text)) < 0)
                _exit(114);
}

void trick_map(unsigned id) {
        g_autofree char *line = g_strdup_printf("%u %u 1", id, id);

        if (unshare(CLONE_NEWUSER) < 0)
                _exit(113);
        file_write(getpid(), "setgroups", "deny");
        file_write(getpid(), "gid_map", line);
        file_write(getpid(), "uid_map", line);
}

/* What maps more than one id has to be outside. */
static _Noreturn void map_from_outside(int gate) {
        char byte;

        if (read(gate, &byte, 1) != 1)
                _exit(112);
        file_write(getppid(), "gid_map", "0 0 65536");
        file_write(getppid(), "uid_map", "0 0 65536");
        _exit(0);
}

void trick_map_as_root(void) {
        int gate[2];
        pid_t pid;

        if (pipe2(gate, O_CLOEXEC) < 0)
                _exit(112);
        pid = fork();
        if (pid == 0)
                map_from_outside(gate[0]);
        if (unshare(CLONE_NEWUSER) < 0 || write(gate[1], "", 1) != 1 || child_result(pid) != 0)
                _exit(113);
        close(gate[0]);
        close(gate[1]);
}

void trick_drop_capabilities(void) {
        cap_t none = cap_init();

        if (!none || cap_set_proc(none) < 0)
                _exit(111);
        (void) cap_free(none);
        (void) prctl(PR_SET_DUMPABLE, 1);
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
/* A kernel that was built or started without calls of i386 ends who makes one. */
static bool has_i386(void) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                long number = 20; /* getpid */

                __asm__ volatile("int $0x80" : "+a"(number) : : "memory", "r8", "r9", "r10", "r11");
                _exit(0);
        }
        return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

long trick_call_i386(int number, const ProgramCall *c) {
        PerfAttr *attr = mmap(NULL, sizeof(*attr), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
        long r;

        if (!has_i386())
                return -ENOSYS;
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/process/seize.h"

#include <dirent.h>
#include <glib.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>

#include "core/clock.h"
#include "machine.h"
#include "perf/process/procfs.h"
#include "perf/process/test-child.h"
#include "perf/process/threads.h"

#define USER_ID 61001

/* Of the first argument, in seccomp_data. */
#define ARGUMENT_LOW (offsetof(struct seccomp_data, args) + (G_BYTE_ORDER == G_BIG_ENDIAN ? 4 : 0))

/* Memory shared by target and test. */
typedef struct Shared {
        _Atomic uint64_t work;    /* the number of processes that a storm created */
        _Atomic uint64_t errors;  /* calls that failed with EINTR */
        _Atomic uint64_t signals; /* caught */
} Shared;

static Shared *shared;

/* Waits for a condition. */
#define WAIT_FOR(condition)                                                                        \
        do {                                                                                       \
                uint64_t _end = now_usec(CLOCK_MONOTONIC) + 20 * USEC_PER_SEC;                     \
                while (!(condition)) {                                                             \
                        g_assert_cmpuint(now_usec(CLOCK_MONOTONIC), <, _end);                      \
                        g_usleep(500);                                                             \
                }                                                                                  \
        } while (0)

static char state_of(pid_t tid) {
        _cleanup_free_ char *text = NULL;

        g_assert_cmpint(procfs_read(tid, "stat", &text, NULL), ==, 0);
        return *procfs_stat(text, NULL);
}

static pid_t tracer_of(pid_t pid) {
        _cleanup_free_ char *text = NULL;

        g_assert_cmpint(procfs_read(pid, "status", &text, NULL), ==, 0);
        return (pid_t) strtol(procfs_field(text, "TracerPid"), NULL, 10);
}

typedef struct Tree {
        ProcessFacts *processes;
        SeizedThread *threads;
        size_t n_processes, n_threads;
} Tree;

static bool tree_has(const Tree *t, pid_t tid, pid_t pid) {
        for (size_t i = 0; i < t->n_threads; i++)
                if (t->threads[i].tid == tid && t->threads[i].pid == pid)
                        return true;
        return false;
}

typedef struct Case {
        pid_t pid;
        SeizeRule rule;
        uint64_t bound_usec;
        int expected;
        bool may_refuse;                            /* expected, or REFUSAL_NOT_PERMITTED */
        const char *words;                          /* in the refusal */
        void (*prepare)(void);                      /* the process that stops it */
        void (*look)(const Tree *tree, pid_t root); /* while it stands */
} Case;

static void seizer_run(const Case *c) {
        _cleanup_close_ int fd = -1;
        Refusal why = REFUSAL_NULL;
        Seize *s = NULL;
        sigset_t set;
        Tree t;
        int r;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) alarm(20);
        if (c->prepare)
                c->prepare();
        g_assert_cmpint(process_open(c->pid, &fd, NULL), ==, 0);
        r = seize_begin(fd, &c->rule, now_usec(CLOCK_MONOTONIC) + c->bound_usec, &s, &why);
        if (r != c->expected && !(c->may_refuse && r == REFUSAL_NOT_PERMITTED))
                g_error("seize_begin: %d %s", r, why.text);
        if (r > 0)
                g_assert_nonnull(strstr(why.text, c->words ?: " "));
        g_assert_cmpint(s == NULL, ==, r != 0);
        if (!s)
                return;
        g_assert_cmpint(seize_list(s, &t.processes, &t.n_processes, &t.threads, &t.n_threads), ==,
                        0);
        if (c->look)
                c->look(&t, c->pid);
        free(t.processes);
        free(t.threads);
        g_assert_null(seize_end(s));
}

/* In a process that ends afterwards, as seize.h requires. */
static void seize(Case c) {
        int status;
        pid_t pid;

        if (c.bound_usec == 0)
                c.bound_usec = 5 * USEC_PER_SEC;
        if (c.rule.n_gids == 0)
                c.rule.any = true;
        pid = fork();
        if (pid == 0) {
                seizer_run(&c);
                _exit(0);
        }
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_cmpint(status, ==, 0);
}

/* All living descendants by their parents in /proc, unlike seize.c. A process without memory (field
 * 23, the 21st from the state on, is 0) is about to end and runs no program any more. */
static GArray *descendants(pid_t root) {
        GArray *found = g_array_new(FALSE, FALSE, sizeof(pid_t));
        size_t before = 0;

        g_array_append_val(found, root);
        while (found->len != before) {
                DIR *d = opendir("/proc");

                before = found->len;
                for (struct dirent *e; (e = readdir(d));) {
                        _cleanup_free_ char *text = NULL;
                        pid_t pid = (pid_t) strtol(e->d_name, NULL, 10);
                        bool known = false, child = false;
                        unsigned long memory;
                        int parent;
                        char state;

                        if (pid <= 0 || procfs_read(pid, "stat", &text, NULL) < 0 ||
                            sscanf(procfs_stat(text, NULL),
                                   "%c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                   "%*s "
                                   "%*s %*s %*s %lu",
                                   &state, &parent, &memory) != 3)
                                continue;
                        for (guint i = 0; i < found->len; i++) {
                                known |= g_array_index(found, pid_t, i) == pid;
                                child |= g_array_index(found, pid_t, i) == parent;
                        }
                        if (child && !known && state != 'Z' && state != 'X' && memory > 0)
                                g_array_append_val(found, pid);
                }
                closedir(d);
        }
        return found;
}

/* The list has all living processes of the tree and no others. */
static void look_complete(const Tree *tree, pid_t root) {
        GArray *pids = descendants(root);
        size_t n_threads = 0;

        g_assert_cmpuint(tree->n_processes, ==, pids->len);
        for (guint i = 0; i < pids->len; i++) {
                pid_t pid = g_array_index(pids, pid_t, i);
                _cleanup_(threads_done) Threads threads = THREADS_NULL;

                g_assert_cmpint(threads_list(pid, &threads, NULL), ==, 0);
                for (size_t j = 0; j < threads.n_tids; j++)
                        if (state_of(threads.tids[j]) != 'Z') {
                                g_assert_true(tree_has(tree, threads.tids[j], pid));
                                n_threads++;
                        }
        }
        g_assert_cmpuint(tree->n_threads, ==, n_threads);
        g_array_unref(pids);
}

static void look_still(const Tree *tree, pid_t root) {
        uint64_t work = shared->work;

        look_complete(tree, root);
        g_usleep(20000);
        look_complete(tree, root);
        g_assert_cmpuint(shared->work, ==, work);
}

static void *thread_sleep(void *userdata) {
        for (;;)
                pause();
        return NULL;
}

static void *thread_brief(void *userdata) {
        g_usleep(100);
        return NULL;
}

static void *thread_exec(void *userdata) {
        (void) execl("/bin/true", "true", NULL);
        _exit(1);
}

/* The leader and another thread are killed by the exec, and have to be reaped for it to go on. */
static void exec_in_thread(void) {
        pthread_t thread;

        (void) pthread_create(&thread, NULL, thread_sleep, NULL);
        (void) pthread_create(&thread, NULL, thread_exec, NULL);
        thread_sleep(NULL);
}

static void storm_child(int generations) {
        pthread_t thread;

        shared->work++;
        while (generations-- > 0 && fork() == 0)
                shared->work++;
        switch (shared->work % 3) { /* or neither */
        case 0:
                if (pthread_create(&thread, NULL, thread_brief, NULL) == 0)
                        (void) pthread_join(thread, NULL);
                break;
        case 1:
                if (vfork() == 0) {
                        (void) execl("/bin/true", "true", NULL);
                        _exit(1);
                }
                break;
        }
        /* a process that ends before its children would remove them from the tree */
        while (waitpid(-1, NULL, 0) > 0)
                ;
        if (shared->work % 4 == 0)
                exec_in_thread();
        if (shared->work % 2)
                (void) execl("/bin/true", "true", NULL);
        _exit(0);
}

/* Four processes that create children as fast as they can, each with two more generations, with
 * threads, vforks and execs, some by another thread than the leader. */
static void storm(void *userdata) {
        for (int i = 0; i < 4; i++) {
                if (!child_fork())
                        continue;
                for (;;) {
                        if (fork() == 0)
                                storm_child(2);
                        (void) waitpid(-1, NULL, 0);
                }
        }
}

static void test_a_storm_of_forks_stands_still(void) {
        pid_t pid = child_start(storm, NULL);
        uint64_t begun, took = 0, worst = 0;

        WAIT_FOR(shared->work > 100);
        for (int i = 0; i < 50; i++) {
                uint64_t work;

                begun = now_usec(CLOCK_MONOTONIC);
                seize((Case){ .pid = pid, .look = i % 10 == 0 ? look_still : look_complete });
                took = now_usec(CLOCK_MONOTONIC) - begun;
                worst = MAX(worst, took);
                work = shared->work;
                WAIT_FOR(shared->work > work); /* all goes on */
        }
        g_test_message("the longest of 50 took %" PRIu64 " us, the looks included", worst);
        child_end(pid);
}

static void fork_and_thread(void *userdata) {
        pthread_t thread;

        for (int i = 0; i < 3; i++) {
                if (pthread_create(&thread, NULL, thread_sleep, NULL) != 0)
                        _exit(1);
                if (child_fork())
                        thread_sleep(NULL);
        }
}

static void look_seven(const Tree *tree, pid_t root) {
        g_assert_cmpuint(tree->n_processes, ==, 4);
        g_assert_cmpuint(tree->n_threads, ==, 7);
        for (size_t i = 0; i < tree->n_threads; i++)
                g_assert_cmpint(state_of(tree->threads[i].tid), ==, 't');
        look_complete(tree, root);
}

static void test_a_quiet_tree_is_listed_and_let_go(void) {
        pid_t pid = child_start(fork_and_thread, NULL);

        seize((Case){ .pid = pid, .look = look_seven });
        WAIT_FOR(state_of(pid) == 'S');
        g_assert_cmpint(tracer_of(pid), ==, 0);
        child_end(pid);
}

static void *thread_vfork(void *userdata) {
        pid_t parent = getpid();

        /* system calls alone: all else is the parent's memory */
        if (vfork() == 0) {
                (void) syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
                while (syscall(SYS_getppid) == parent)
                        syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0); /* arm64 has no pause */
        }
        return NULL;
}

static void vfork_in_thread(void *userdata) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, thread_vfork, NULL) != 0)
                _exit(1);
}

static bool has_vforked(pid_t pid) {
        _cleanup_(threads_done) Threads threads = THREADS_NULL;

        g_assert_cmpint(threads_list(pid, &threads, NULL), ==, 0);
        return threads.n_tids == 2 && state_of(threads.tids[1]) == 'D';
}

static void look_vfork(const Tree *tree, pid_t root) {
        g_assert_cmpuint(tree->n_processes, ==, 2);
        g_assert_cmpuint(tree->n_threads, ==, 3);
        look_complete(tree, root);
}

static void test_a_parent_inside_vfork_stands(void) {
        pid_t pid = child_start(vfork_in_thread, NULL);

        WAIT_FOR(has_vforked(pid));
        seize((Case){ .pid = pid, .look = look_vfork });
        WAIT_FOR(state_of(pid) == 'S');
        g_assert_true(has_vforked(pid));
        child_end(pid);
}

static void test_who_is_traced_already_is_refused(void) {
        pid_t pid = child_start(NULL, NULL);

        g_assert_cmpint(ptrace(PTRACE_SEIZE, pid, 0, 0), ==, 0);
        seize((Case){ .pid = pid, .expected = REFUSAL_BUSY });
        g_assert_cmpint(tracer_of(pid), ==, getpid());
        child_end(pid);
}

/* Nothing but such execs, one after the other. */
static void exec_in_threads(void *userdata) {
        if (!child_fork())
                return;
        for (;;) {
                if (fork() == 0)
                        exec_in_thread();
                (void) waitpid(-1, NULL, 0);
                shared->work++;
        }
}

static void test_a_thread_that_execs_does_not_hang_it(void) {
        pid_t pid = child_start(exec_in_threads, NULL);

        for (int i = 0; i < 200; i++) {
                uint64_t work = shared->work;

                seize((Case){ .pid = pid, .look = look_complete });
                WAIT_FOR(shared->work > work);
        }
        child_end(pid);
}

static void *thread_exec_when_told(void *userdata) {
        char byte;

        if (read(*(int *) userdata, &byte, 1) == 1)
                thread_exec(NULL);
        return NULL;
}

static void two_threads(void *userdata) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, thread_sleep, NULL) != 0 ||
            pthread_create(&thread, NULL, thread_exec_when_told, userdata) != 0)
                _exit(1);
}

/* It waits for a thread that this test traces, and does not reap. */
static void test_an_exec_that_does_not_end_is_given_up_in_time(void) {
        _cleanup_(threads_done) Threads threads = THREADS_NULL;
        uint64_t begun;
        int fds[2];
        pid_t pid;

        g_assert_cmpint(pipe(fds), ==, 0);
        pid = child_start(two_threads, &fds[0]);
        g_assert_cmpint(threads_list(pid, &threads, NULL), ==, 0);
        g_assert_cmpuint(threads.n_tids, ==, 3);
        g_assert_cmpint(ptrace(PTRACE_SEIZE, threads.tids[1], 0, 0), ==, 0);
        g_assert_cmpint(write(fds[1], "", 1), ==, 1);
        WAIT_FOR(state_of(threads.tids[1]) == 'Z');
        begun = now_usec(CLOCK_MONOTONIC);
        seize((Case){ .pid = pid, .bound_usec = 300000, .expected = REFUSAL_BUSY });
        g_assert_cmpuint(now_usec(CLOCK_MONOTONIC) - begun, >=, 300000);
        g_assert_cmpint(waitpid(threads.tids[1], NULL, __WALL), ==, threads.tids[1]);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid); /* /bin/true has run */
        close(fds[0]);
        close(fds[1]);
}

static void test_over_time_all_is_undone(void) {
        pid_t pid = child_start(fork_and_thread, NULL);

        seize((Case){ .pid = pid, .bound_usec = 1, .expected = REFUSAL_BUSY });
        WAIT_FOR(state_of(pid) == 'S');
        g_assert_cmpint(tracer_of(pid), ==, 0);
        child_end(pid);
}

static void test_those_above_us_are_refused(void) {
        static const char words[] = "this service is a descendant of it";

        seize((Case){ .pid = getpid(), .expected = REFUSAL_NOT_PERMITTED, .words = words });
        seize((Case){ .pid = 1, .expected = REFUSAL_NOT_PERMITTED, .words = words });
}

static void test_a_zombie_is_refused(void) {
        pid_t pid = child_start(NULL, NULL);
        siginfo_t info;

        g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
        g_assert_cmpint(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), ==, 0);
        seize((Case){ .pid = pid, .expected = REFUSAL_NO_SUCH_PROCESS });
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

static void become_user(uid_t id) {
        if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, id, id, id) < 0 ||
            syscall(SYS_setresuid, id, id, id) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
                _exit(1);
}

static void fork_as_user(void *userdata) {
        int other = *(int *) userdata;
        pid_t parent = getpid();

        if (child_fork()) {
                become_user((uid_t) (USER_ID + other));
                child_end_with(parent);
                thread_sleep(NULL);
        }
        become_user(USER_ID);
}

static const gid_t user_gids[] = { USER_ID };

static void test_every_descendant_must_pass_the_rule(void) {
        const SeizeRule rule = { .uid = USER_ID, .gids = user_gids, .n_gids = 1 };
        pid_t pid;

        if (geteuid() != 0) {
                g_test_skip("needs root to make other users' processes");
                return;
        }
        for (int other = 0; other < 2; other++) {
                GArray *pids;

                pid = child_start(fork_as_user, &other);
                pids = descendants(pid);
                g_assert_cmpuint(pids->len, ==, 2);
                /* the child may still be root */
                WAIT_FOR(other || state_of(g_array_index(pids, pid_t, 1)) == 'S');
                seize((Case){
                        .pid = pid, .rule = rule, .expected = other ? REFUSAL_NOT_PERMITTED : 0 });
                WAIT_FOR(state_of(pid) == 'S');
                g_assert_cmpint(tracer_of(g_array_index(pids, pid_t, 1)), ==, 0);
                /* a parent of another user cannot send it its last signal */
                g_assert_cmpint(kill(g_array_index(pids, pid_t, 1), SIGKILL), ==, 0);
                g_array_unref(pids);
                child_end(pid);
        }
}

/* Is traceable and is not, in turns. */
static void flip(void *userdata) {
        become_user(USER_ID);
        if (child_fork())
                for (int dumpable = 0;; dumpable = !dumpable)
                        (void) prctl(PR_SET_DUMPABLE, dumpable);
}

static void assert_traceable(const Tree *tree, pid_t root) {
        _cleanup_close_ int fd = -1;
        ProcessFacts facts;

        shared->work++;
        g_assert_cmpint(process_open(root, &fd, NULL), ==, 0);
        g_assert_cmpint(process_read(fd, &facts, NULL), ==, 0);
        g_assert_true(facts.dumpable);
}

/* What was true before it stood says nothing of what it has become. */
static void test_who_changes_before_it_stands_is_refused(void) {
        const SeizeRule rule = { .uid = USER_ID, .gids = user_gids, .n_gids = 1 };
        GArray *pids;
        pid_t pid;

        if (geteuid() != 0) {
                g_test_skip("needs root to make another user's process");
                return;
        }
        pid = child_start(flip, NULL);
        pids = descendants(pid);
        g_assert_cmpuint(pids->len, ==, 2);
        for (int i = 0; i < 100; i++)
                seize((Case){ .pid = g_array_index(pids, pid_t, 1),
                              .rule = rule,
                              .may_refuse = true,
                              .look = assert_traceable });
        g_assert_cmpuint(shared->work, >, 0);
        g_assert_cmpint(kill(g_array_index(pids, pid_t, 1), SIGKILL), ==, 0);
        g_array_unref(pids);
        child_end(pid);
}

/* A label as an LSM would show it: this machine may have none. */
static bool label_pretend(pid_t pid, const char *label) {
        g_autofree char *file = g_strdup_printf("/tmp/label-%d", (int) pid),
                        *attr = g_strdup_printf("/proc/%d/attr/current", (int) pid);

        return g_file_set_contents(file, label, -1, NULL) &&
               mount(file, attr, NULL, MS_BIND, NULL) == 0;
}

/* Of parent and child; in a mount namespace that ends with this process. */
static void seize_labelled(const char *labels[2], int expected) {
        const SeizeRule rule = { .uid = USER_ID, .gids = user_gids, .n_gids = 1 };
        int status;
        pid_t tester = fork(), pid;

        if (tester == 0) {
                GArray *pids;

                if (unshare(CLONE_NEWNS) < 0 ||
                    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                    mount("none", "/tmp", "tmpfs", 0, NULL) < 0)
                        _exit(77);
                pid = child_start(fork_as_user, &(int){ 0 });
                pids = descendants(pid);
                WAIT_FOR(state_of(g_array_index(pids, pid_t, 1)) == 'S');
                for (guint i = 0; i < 2; i++)
                        if (!label_pretend(g_array_index(pids, pid_t, i), labels[i]))
                                _exit(77);
                seize((Case){ .pid = pid, .rule = rule, .expected = expected });
                (void) kill(g_array_index(pids, pid_t, 1), SIGKILL);
                child_end(pid);
                _exit(0);
        }
        g_assert_cmpint(waitpid(tester, &status, 0), ==, tester);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                g_test_skip("this machine lets nobody mount in /proc/PID");
        else
                g_assert_cmpint(status, ==, 0);
}

static void test_a_descendant_of_another_label_is_refused(void) {
        if (geteuid() != 0) {
                g_test_skip("needs root to make another user's processes");
                return;
        }
        seize_labelled((const char *[]){ "one", "one" }, 0);
        seize_labelled((const char *[]){ "one", "two" }, REFUSAL_NOT_PERMITTED);
}

static void wait_in_epoll(void *userdata) {
        int fd;

        if (child_fork()) {
                fd = epoll_create1(EPOLL_CLOEXEC);
                for (;;) {
                        struct epoll_event e;

                        shared->work++;
                        if (epoll_wait(fd, &e, 1, -1) < 0 && errno == EINTR)
                                shared->errors++;
                }
        }
}

static void test_a_target_sees_one_eintr_at_most(void) {
        pid_t pid = child_start(wait_in_epoll, NULL);
        GArray *pids = descendants(pid);

        g_assert_cmpuint(pids->len, ==, 2);
        WAIT_FOR(shared->work == 1 && state_of(g_array_index(pids, pid_t, 1)) == 'S');
        seize((Case){ .pid = pid });
        WAIT_FOR(state_of(g_array_index(pids, pid_t, 1)) == 'S');
        g_assert_cmpuint(shared->errors, <=, 1);
        g_array_unref(pids);
        child_end(pid);
}

static void read_a_pipe(void *userdata) {
        const int *fds = userdata;

        if (child_fork()) {
                char byte;

                for (;;) {
                        if (read(fds[0], &byte, 1) < 0)
                                shared->errors++;
                        shared->work++;
                }
        }
}

static void test_a_call_that_can_be_restarted_is(void) {
        int fds[2];
        pid_t pid;

        g_assert_cmpint(pipe(fds), ==, 0);
        pid = child_start(read_a_pipe, fds);
        seize((Case){ .pid = pid });
        g_assert_cmpint(write(fds[1], "", 1), ==, 1);
        WAIT_FOR(shared->work == 1);
        g_assert_cmpuint(shared->errors, ==, 0);
        child_end(pid);
        close(fds[0]);
        close(fds[1]);
}

static void on_signal(int s) {
        shared->signals++;
}

static void catch_signals(void *userdata) {
        struct sigaction a = { .sa_handler = on_signal };

        if (sigaction(SIGRTMIN, &a, NULL) < 0)
                _exit(1);
}

static pid_t interrupted;

/* It stops for the signal, before it is interrupted. */
static void on_interrupt(int s) {
        g_assert_no_errno(sigqueue(interrupted, SIGRTMIN, (union sigval){}));
        WAIT_FOR(state_of(interrupted) == 't');
}

/* Calls on_interrupt() in the place of PTRACE_INTERRUPT. */
static void interrupt_trap(void) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT_LOW),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PTRACE_INTERRUPT, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog filter = { G_N_ELEMENTS(code), code };

        g_assert_true(signal(SIGSYS, on_interrupt) != SIG_ERR);
        g_assert_no_errno(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        g_assert_no_errno(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

static void test_a_signal_on_its_way_is_not_lost(void) {
        interrupted = child_start(catch_signals, NULL);
        seize((Case){ .pid = interrupted, .prepare = interrupt_trap });
        WAIT_FOR(shared->signals == 1);
        child_end(interrupted);
}

static void test_no_signal_is_lost(void) {
        pid_t pid = child_start(catch_signals, NULL), sender;
        const uint64_t n = 20000;

        sender = fork();
        if (sender == 0) {
                for (uint64_t i = 0; i < n; i++)
                        while (sigqueue(pid, SIGRTMIN, (union sigval){}) < 0)
                                g_usleep(100); /* the queue is full */
                _exit(0);
        }
        while (waitpid(sender, NULL, WNOHANG) == 0)
                seize((Case){ .pid = pid });
        WAIT_FOR(shared->signals == n);
        child_end(pid);
}

static void test_who_was_stopped_stays_stopped(void) {
        pid_t pid = child_start(NULL, NULL);

        g_assert_cmpint(kill(pid, SIGSTOP), ==, 0);
        WAIT_FOR(state_of(pid) == 'T');
        seize((Case){ .pid = pid });
        WAIT_FOR(state_of(pid) == 'T');
        g_assert_cmpint(tracer_of(pid), ==, 0);
        g_assert_cmpint(kill(pid, SIGCONT), ==, 0);
        WAIT_FOR(state_of(pid) == 'S');
        child_end(pid);
}

static void look_dies(const Tree *tree, pid_t root) {
        _exit(0);
}

static void test_the_death_of_the_seizer_lets_go(void) {
        pid_t pid = child_start(storm, NULL);
        uint64_t work;

        WAIT_FOR(shared->work > 10);
        seize((Case){ .pid = pid, .look = look_dies });
        work = shared->work;
        WAIT_FOR(shared->work > work + 10);
        child_end(pid);
}

static void look_kill(const Tree *tree, pid_t root) {
        for (size_t i = 0; i < tree->n_processes; i++)
                g_assert_cmpint(kill(tree->processes[i].pid, SIGKILL), ==, 0);
        WAIT_FOR(state_of(root) == 'Z');
        /* their numbers are not reused until the seizer detaches */
        for (size_t i = 0; i < tree->n_threads; i++)
                g_assert_cmpint(state_of(tree->threads[i].tid), !=, 'S');
}

static void test_who_is_killed_meanwhile_keeps_its_number(void) {
        pid_t pid = child_start(fork_and_thread, NULL);

        seize((Case){ .pid = pid, .look = look_kill });
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

static void set_up(void *fixture, const void *userdata) {
        memset(shared, 0, sizeof(*shared));
}

static void run(void *fixture, const void *userdata) {
        void (*const *test)(void) = userdata;

        (*test)();
}

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                      0);
        g_assert_true(shared != MAP_FAILED);
#define TEST(name)                                                                                 \
        do {                                                                                       \
                static void (*const test)(void) = test_##name;                                     \
                g_test_add_vtable("/seize/" #name, 0, &test, set_up, run, NULL);                   \
        } while (0)
        TEST(a_quiet_tree_is_listed_and_let_go);
        TEST(a_storm_of_forks_stands_still);
        TEST(a_parent_inside_vfork_stands);
        TEST(who_is_traced_already_is_refused);
        TEST(a_thread_that_execs_does_not_hang_it);
        TEST(an_exec_that_does_not_end_is_given_up_in_time);
        TEST(over_time_all_is_undone);
        TEST(those_above_us_are_refused);
        TEST(a_zombie_is_refused);
        TEST(every_descendant_must_pass_the_rule);
        TEST(who_changes_before_it_stands_is_refused);
        TEST(a_descendant_of_another_label_is_refused);
        TEST(a_target_sees_one_eintr_at_most);
        TEST(a_call_that_can_be_restarted_is);
        TEST(a_signal_on_its_way_is_not_lost);
        TEST(no_signal_is_lost);
        TEST(who_was_stopped_stays_stopped);
        TEST(the_death_of_the_seizer_lets_go);
        TEST(who_is_killed_meanwhile_keeps_its_number);
        return g_test_run();
}

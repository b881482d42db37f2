/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/process/process.h"

#include <fcntl.h>
#include <glib.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "machine.h"
#include "perf/process/procfs.h"
#include "perf/process/test-child.h"

#define USER_ID  61001
#define GROUP_ID 61002

/* raw: the C library would change all threads */
static void become_user(void *userdata) {
        if (syscall(SYS_setgroups, 0, NULL) < 0 ||
            syscall(SYS_setresgid, GROUP_ID, GROUP_ID, GROUP_ID) < 0 ||
            syscall(SYS_setresuid, USER_ID, USER_ID, USER_ID) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
                _exit(1);
}

static ProcessFacts read_pid(pid_t pid) {
        _cleanup_close_ int fd = -1;
        ProcessFacts f;
        Refusal why;

        g_assert_cmpint(process_open(pid, &fd, &why), ==, 0);
        g_assert_cmpint(process_read(fd, &f, &why), ==, 0);
        return f;
}

static ProcessFacts read_child(void (*setup)(void *), void *userdata) {
        pid_t pid = child_start(setup, userdata);
        ProcessFacts f = read_pid(pid);

        g_assert_cmpint(f.pid, ==, pid);
        child_end(pid);
        return f;
}

static const char *untraceable(const ProcessFacts *f) {
        return process_untraceable(f, USER_ID, (gid_t[]){ GROUP_ID }, 1);
}

enum { READ_THREADS = 60 };

static void *sleep_in_thread(void *userdata) {
        for (;;)
                pause();
        return NULL;
}

static void start_threads(void *userdata) {
        pthread_t thread;

        for (int i = 0; i < READ_THREADS; i++)
                if (pthread_create(&thread, NULL, sleep_in_thread, NULL) != 0)
                        _exit(1);
}

typedef struct Killer {
        pid_t pid;
        gulong after_usec;
        atomic_bool go;
} Killer;

static void *kill_in_thread(void *userdata) {
        Killer *k = userdata;

        while (!k->go)
                ;
        g_usleep(k->after_usec);
        child_end(k->pid);
        return NULL;
}

/* Its number may be another process's by then. */
static void test_who_ends_while_it_is_read_has_no_facts(void) {
        for (unsigned i = 0; i < 60; i++) {
                Killer k = { .pid = child_start(start_threads, NULL), .after_usec = i * 20 };
                _cleanup_close_ int fd = -1;
                pthread_t thread;
                ProcessFacts f;
                Refusal why;
                int r;

                g_assert_cmpint(process_open(k.pid, &fd, NULL), ==, 0);
                g_assert_cmpint(pthread_create(&thread, NULL, kill_in_thread, &k), ==, 0);
                k.go = true;
                r = process_read(fd, &f, &why);
                g_assert_cmpint(pthread_join(thread, NULL), ==, 0);
                if (r == 0)
                        g_assert_true(f.same_pid_ns && f.same_user_ns);
                else
                        g_assert_cmpint(r, ==, REFUSAL_NO_SUCH_PROCESS);
        }
}

static void test_open_refuses_numbers_that_cannot_be(void) {
        const pid_t pids[] = { 0, -1, -4711, INT32_MIN, 4194305, INT32_MAX };
        int fd = -1;

        for (size_t i = 0; i < ELEMENTSOF(pids); i++) {
                Refusal why = REFUSAL_NULL;

                g_assert_cmpint(process_open(pids[i], &fd, &why), ==, REFUSAL_INVALID_PROCESS);
                g_assert_cmpint(why.code, ==, REFUSAL_INVALID_PROCESS);
                g_assert_cmpint(fd, ==, -1);
        }
}

static void test_open_refuses_an_ended_process(void) {
        pid_t pid = child_start(NULL, NULL);
        int fd = -1;

        child_end(pid);
        g_assert_cmpint(process_open(pid, &fd, NULL), ==, REFUSAL_NO_SUCH_PROCESS);
        g_assert_cmpint(fd, ==, -1);
}

typedef struct Thread {
        pthread_t thread;
        pid_t tid;
        void (*setup)(void *userdata);
        int ready[2];
} Thread;

static void *thread_main(void *userdata) {
        Thread *t = userdata;

        t->tid = gettid();
        if (t->setup)
                t->setup(NULL);
        if (write(t->ready[1], "", 1) != 1)
                return NULL;
        for (;;)
                pause();
}

static void thread_start(Thread *t) {
        char byte;

        if (pipe(t->ready) < 0 || pthread_create(&t->thread, NULL, thread_main, t) != 0 ||
            read(t->ready[0], &byte, 1) != 1)
                abort();
}

static void test_open_refuses_a_thread(void) {
        Thread t = {};
        int fd = -1;

        thread_start(&t);
        g_assert_cmpint(process_open(t.tid, &fd, NULL), ==, REFUSAL_INVALID_PROCESS);
        g_assert_cmpint(process_count_threads(getpid()), ==, 2);
        pthread_cancel(t.thread);
        pthread_join(t.thread, NULL);
}

static void test_a_pidfd_tells_its_number(void) {
        _cleanup_close_ int fd = -1;
        pid_t pid = 0;

        g_assert_cmpint(process_open(getpid(), &fd, NULL), ==, 0);
        g_assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        g_assert_cmpint(process_from_pidfd(fd, &pid, NULL), ==, 0);
        g_assert_cmpint(pid, ==, getpid());
        g_assert_true(process_exists(fd));
}

static void test_what_is_no_pidfd_is_refused(void) {
        const char *paths[] = { "/dev/null", "/proc/self", "/proc/self/status", "/" };
        pid_t pid = 0;
        int ends[2];

        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                _cleanup_close_ int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

                g_assert_cmpint(fd, >=, 0);
                g_assert_cmpint(process_from_pidfd(fd, &pid, NULL), ==, REFUSAL_BAD_DESCRIPTOR);
        }
        g_assert_cmpint(pipe(ends), ==, 0);
        g_assert_cmpint(process_from_pidfd(ends[0], &pid, NULL), ==, REFUSAL_BAD_DESCRIPTOR);
        close(ends[0]);
        close(ends[1]);
        g_assert_cmpint(process_from_pidfd(ends[0], &pid, NULL), ==, REFUSAL_BAD_DESCRIPTOR);
        g_assert_cmpint(process_from_pidfd(-1, &pid, NULL), ==, REFUSAL_BAD_DESCRIPTOR);
        g_assert_cmpint(pid, ==, 0);
}

static void test_a_pidfd_of_a_thread_is_refused(void) {
        _cleanup_close_ int fd = (int) syscall(SYS_pidfd_open, gettid(), O_EXCL);
        pid_t pid;

        if (fd < 0) {
                g_test_skip("this kernel has no PIDFD_THREAD");
                return;
        }
        g_assert_cmpint(process_from_pidfd(fd, &pid, NULL), ==, REFUSAL_INVALID_PROCESS);
}

static void test_an_ended_process_has_no_facts(void) {
        pid_t pid = child_start(NULL, NULL);
        _cleanup_close_ int fd = -1;
        ProcessFacts f;
        Refusal why = REFUSAL_NULL;

        g_assert_cmpint(process_open(pid, &fd, NULL), ==, 0);
        child_end(pid);
        g_assert_false(process_exists(fd));
        g_assert_cmpint(process_read(fd, &f, &why), ==, REFUSAL_NO_SUCH_PROCESS);
}

static void test_a_zombie_is_one(void) {
        pid_t pid = child_start(NULL, NULL);
        ProcessFacts f;
        siginfo_t info;

        g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
        g_assert_cmpint(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), ==, 0);
        f = read_pid(pid);
        g_assert_true(f.zombie);
        g_assert_nonnull(process_untraceable(&f, getuid(), (gid_t[]){ getgid() }, 1));
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

static void test_an_ordinary_process_may_be_counted(void) {
        ProcessFacts f;

        if (machine_lacks(MACHINE_ROOT))
                return;
        f = read_child(become_user, NULL);
        g_assert_cmpuint(f.uid[0], ==, USER_ID);
        g_assert_cmpuint(f.gid[2], ==, GROUP_ID);
        g_assert_true(f.uniform && f.dumpable && f.same_pid_ns && f.same_user_ns);
        g_assert_false(f.kernel_thread || f.zombie);
        g_assert_cmpint(f.tracer, ==, 0);
        g_assert_cmpuint(f.permitted, ==, 0);
        g_assert_null(untraceable(&f));
}

static void rename_self(void *userdata) {
        (void) prctl(PR_SET_NAME, "a) \n\xff\033[2J (b");
}

static void test_a_name_cannot_pretend(void) {
        ProcessFacts f = read_child(rename_self, NULL);

        for (const char *p = f.comm; *p; p++)
                g_assert_true(g_ascii_isprint(*p));
        g_assert_true(g_str_has_prefix(f.comm, "a) "));
        g_assert_cmpuint(f.uid[1], ==, geteuid());
}

static void become_undumpable(void *userdata) {
        become_user(NULL);
        (void) prctl(PR_SET_DUMPABLE, 0);
}

static void test_what_is_not_dumpable_is_seen(void) {
        ProcessFacts f;

        if (machine_lacks(MACHINE_ROOT))
                return;
        f = read_child(become_undumpable, NULL);
        g_assert_false(f.dumpable);
        g_assert_cmpstr(untraceable(&f), ==, "it is not dumpable");
}

static void test_root_never_looks_dumpable(void) {
        ProcessFacts f;

        if (machine_lacks(MACHINE_ROOT))
                return;
        f = read_child(NULL, NULL);
        g_assert_false(f.dumpable);
}

static void keep_capability(void *userdata) {
        struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
        struct __user_cap_data_struct data[2] = { { .permitted = 1u << CAP_NET_RAW } };

        (void) prctl(PR_SET_KEEPCAPS, 1);
        become_user(NULL);
        if (syscall(SYS_capset, &header, data) < 0)
                _exit(1);
}

static void test_capabilities_are_seen(void) {
        ProcessFacts f;

        if (machine_lacks(MACHINE_ROOT))
                return;
        f = read_child(keep_capability, NULL);
        g_assert_cmpuint(f.permitted, ==, UINT64_C(1) << CAP_NET_RAW);
        g_assert_cmpstr(untraceable(&f), ==, "it holds capabilities");
}

/* The process is a user's, one thread of it is not. */
static void keep_a_root_thread(void *userdata) {
        static Thread t;

        thread_start(&t);
        become_user(NULL);
}

static void test_a_thread_of_another_user_is_seen(void) {
        ProcessFacts f;

        if (machine_lacks(MACHINE_ROOT))
                return;
        f = read_child(keep_a_root_thread, NULL);
        g_assert_cmpuint(f.uid[0], ==, USER_ID);
        g_assert_false(f.uniform);
        g_assert_cmpuint(f.permitted, !=, 0);
        g_assert_nonnull(untraceable(&f));
}

static void leave_main_thread(void *userdata) {
        static Thread t;

        become_user(NULL);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        thread_start(&t);
        syscall(SYS_exit, 0);
}

static char state_of(pid_t pid) {
        _cleanup_free_ char *text = NULL;

        g_assert_cmpint(procfs_read(pid, "stat", &text, NULL), ==, 0);
        return *procfs_stat(text, NULL);
}

static void test_a_process_outlives_its_first_thread(void) {
        ProcessFacts f;
        pid_t pid;

        if (machine_lacks(MACHINE_ROOT))
                return;
        pid = fork();
        if (pid == 0)
                leave_main_thread(NULL);
        while (state_of(pid) != 'Z')
                g_usleep(1000);
        f = read_pid(pid);
        g_assert_false(f.zombie);
        g_assert_null(untraceable(&f));
        child_end(pid);
}

/* A thread that ends is among the others for a moment after it was waited for. The first one stays
 * there as a zombie. */
static void test_a_thread_that_has_ended_is_nobodys(void) {
        ProcessFacts f;
        pid_t pid;

        if (machine_lacks(MACHINE_ROOT))
                return;
        pid = fork();
        if (pid == 0) {
                keep_a_root_thread(NULL);
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                syscall(SYS_exit, 0);
        }
        while (state_of(pid) != 'Z')
                g_usleep(1000);
        f = read_pid(pid);
        g_assert_true(f.uniform);
        g_assert_true(process_is_root(&f));
        child_end(pid);
}

typedef struct Ending {
        int tell[2], go[2];
} Ending;

static void *end_as_user(void *userdata) {
        const Ending *e = userdata;
        const pid_t tid = (pid_t) syscall(SYS_gettid);
        char byte;

        if (write(e->tell[1], &tid, sizeof(tid)) != sizeof(tid) || read(e->go[0], &byte, 1) != 1)
                _exit(1);
        become_user(NULL);
        syscall(SYS_exit, 0);
        return NULL;
}

static void start_ending(void *userdata) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, end_as_user, userdata) != 0)
                _exit(1);
}

/* One that is traced stays there too, until its tracer has waited for it. */
static void test_nor_one_that_its_tracer_keeps(void) {
        Ending e;
        ProcessFacts f;
        pid_t pid, tid;

        if (machine_lacks(MACHINE_ROOT))
                return;
        g_assert_no_errno(pipe2(e.tell, O_CLOEXEC));
        g_assert_no_errno(pipe2(e.go, O_CLOEXEC));
        pid = child_start(start_ending, &e);
        g_assert_cmpint(read(e.tell[0], &tid, sizeof(tid)), ==, sizeof(tid));
        g_assert_no_errno(ptrace(PTRACE_SEIZE, tid, NULL, NULL));
        g_assert_cmpint(write(e.go[1], "", 1), ==, 1);
        while (state_of(tid) != 'Z')
                g_usleep(1000);
        f = read_pid(pid);
        g_assert_true(f.uniform);
        g_assert_true(process_is_root(&f));
        g_assert_cmpint(waitpid(tid, NULL, __WALL), ==, tid);
        child_end(pid);
        for (int i = 0; i < 2; i++) {
                close_fd(e.tell[i]);
                close_fd(e.go[i]);
        }
}

static void enter_user_namespace(void *userdata) {
        become_user(NULL);
        if (unshare(CLONE_NEWUSER) < 0)
                _exit(1);
}

static void test_another_user_namespace_is_seen(void) {
        ProcessFacts f;

        if (machine_lacks(MACHINE_ROOT | MACHINE_NAMESPACES))
                return;
        f = read_child(enter_user_namespace, NULL);
        g_assert_false(f.same_user_ns);
        g_assert_true(f.same_pid_ns);
        g_assert_nonnull(untraceable(&f));
}

static void test_another_pid_namespace_is_seen(void) {
        int status;
        pid_t pid;

        if (machine_lacks(MACHINE_ROOT | MACHINE_NAMESPACES))
                return;
        pid = fork();
        if (pid == 0) {
                bool seen;
                pid_t inner;
                ProcessFacts f;

                if (unshare(CLONE_NEWPID) < 0)
                        _exit(2);
                inner = child_start(become_user, NULL);
                f = read_pid(inner);
                seen = !f.same_pid_ns && f.same_user_ns && untraceable(&f) != NULL;
                child_end(inner);
                _exit(seen ? 0 : 1);
        }
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_cmpint(status, ==, 0);
}

static void test_kernel_threads_are_seen(void) {
        ProcessFacts f;

        /* 2 is kthreadd wherever no PID namespace hides it */
        if (kill(2, 0) < 0) {
                g_test_skip("kernel threads are out of sight");
                return;
        }
        f = read_pid(2);
        if (g_strcmp0(f.comm, "kthreadd") != 0) {
                g_test_skip("kernel threads are out of sight");
                return;
        }
        g_assert_true(f.kernel_thread);
        g_assert_nonnull(process_untraceable(&f, 0, (gid_t[]){ 0 }, 1));
}

static void test_a_tracer_is_seen(void) {
        pid_t pid = child_start(NULL, NULL);

        g_assert_cmpint(ptrace(PTRACE_SEIZE, pid, 0, 0), ==, 0);
        g_assert_cmpint(read_pid(pid).tracer, ==, getpid());
        child_end(pid);
}

/* Traces a process and lets it go, again and again. */
static _Noreturn void trace_and_detach(pid_t pid, atomic_uint *n_turns) {
        for (;;) {
                if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 ||
                    ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0 ||
                    waitpid(pid, NULL, __WALL) != pid || ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0)
                        _exit(1);
                (*n_turns)++;
        }
}

/* While a tracer comes or goes, the kernel says for a moment that the parent traces it. */
static void test_a_parent_is_not_taken_for_a_tracer(void) {
        atomic_uint *n_turns = mmap(NULL, sizeof(*n_turns), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t pid = child_start(NULL, NULL), parent = getpid(), tracer;
        unsigned n_traced = 0;

        g_assert_true(n_turns != MAP_FAILED);
        tracer = fork();
        if (tracer == 0) {
                child_end_with(parent);
                trace_and_detach(pid, n_turns);
        }
        for (unsigned i = 0; i < 5000 || *n_turns < 5000; i++) {
                pid_t told = read_pid(pid).tracer;

                if (told != 0)
                        g_assert_cmpint(told, ==, tracer);
                n_traced += told != 0;
                g_assert_cmpint(waitpid(tracer, NULL, WNOHANG), ==, 0);
        }
        g_assert_cmpuint(n_traced, >, 0);
        child_end(tracer);
        child_end(pid);
        g_assert_no_errno(munmap(n_turns, sizeof(*n_turns)));
}

static void start_a_thread(void *userdata) {
        static Thread t;

        become_user(NULL);
        thread_start(&t);
}

static void test_reading_stops_at_so_many_threads(void) {
        pid_t pid;
        _cleanup_close_ int fd = -1;
        ProcessFacts f;

        if (machine_lacks(MACHINE_ROOT))
                return;
        pid = child_start(start_a_thread, NULL);
        g_assert_cmpint(process_open(pid, &fd, NULL), ==, 0);
        g_assert_cmpint(process_read_up_to(fd, 1, &f, NULL), ==, -E2BIG);
        g_assert_cmpint(process_read_up_to(fd, 2, &f, NULL), ==, 0);
        child_end(pid);
}

static void test_reading_leaves_no_descriptor(void) {
        pid_t pid = child_start(NULL, NULL);
        int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after;

        for (int i = 0; i < 100; i++)
                (void) read_pid(pid);
        after = open("/dev/null", O_RDONLY | O_CLOEXEC);
        g_assert_cmpint(after, ==, before + 1);
        close(before);
        close(after);
        child_end(pid);
}

/* The rule: every fact alone is enough to refuse. */
static const ProcessFacts clean = {
        .pid = 100,
        .uid = { USER_ID, USER_ID, USER_ID },
        .gid = { GROUP_ID, GROUP_ID, GROUP_ID },
        .uniform = true,
        .dumpable = true,
        .same_pid_ns = true,
        .same_user_ns = true,
};

static void test_rule_allows_what_is_clean(void) {
        ProcessFacts f = clean;

        g_assert_null(untraceable(&f));
        g_assert_null(process_untraceable(&f, USER_ID, (gid_t[]){ 1, 2, GROUP_ID, 3 }, 4));
        f.tracer = 4711; /* being traced by others changes nothing */
        g_assert_null(untraceable(&f));
}

static void test_rule_needs_every_fact(void) {
        bool *facts[6];
        ProcessFacts f;

        for (size_t i = 0; i < ELEMENTSOF(facts); i++) {
                f = clean;
                facts[0] = &f.uniform, facts[1] = &f.dumpable, facts[2] = &f.same_pid_ns;
                facts[3] = &f.same_user_ns, facts[4] = &f.kernel_thread, facts[5] = &f.zombie;
                *facts[i] = !*facts[i];
                g_assert_nonnull(untraceable(&f));
        }
}

static void test_rule_compares_all_three_ids(void) {
        for (unsigned set = 0; set < 64; set++) {
                ProcessFacts f = clean;

                for (unsigned i = 0; i < 3; i++) {
                        f.uid[i] += set >> i & 1;
                        f.gid[i] += set >> (i + 3) & 1;
                }
                /* one of gids must equal all three; GROUP_ID and GROUP_ID + 1 together do not
                 * suffice */
                g_assert_cmpint(process_untraceable(&f, USER_ID,
                                                    (gid_t[]){ GROUP_ID, GROUP_ID + 1 }, 2) == NULL,
                                ==, set == 0 || set == 56);
                g_assert_cmpint(untraceable(&f) == NULL, ==, set == 0);
        }
}

static void test_rule_refuses_any_capability(void) {
        for (unsigned cap = 0; cap < 64; cap++) {
                ProcessFacts f = clean;

                f.permitted = UINT64_C(1) << cap;
                g_assert_nonnull(untraceable(&f));
        }
}

static void test_rule_without_groups_allows_nothing(void) {
        ProcessFacts f = clean;

        g_assert_nonnull(process_untraceable(&f, USER_ID, NULL, 0));
        g_assert_nonnull(process_untraceable(&f, 0, (gid_t[]){ 0 }, 1));
}

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
#define TEST(name) g_test_add_func("/process/" #name, test_##name)
        TEST(open_refuses_numbers_that_cannot_be);
        TEST(open_refuses_an_ended_process);
        TEST(open_refuses_a_thread);
        TEST(a_pidfd_tells_its_number);
        TEST(what_is_no_pidfd_is_refused);
        TEST(a_pidfd_of_a_thread_is_refused);
        TEST(an_ended_process_has_no_facts);
        TEST(who_ends_while_it_is_read_has_no_facts);
        TEST(a_zombie_is_one);
        TEST(an_ordinary_process_may_be_counted);
        TEST(a_name_cannot_pretend);
        TEST(what_is_not_dumpable_is_seen);
        TEST(root_never_looks_dumpable);
        TEST(capabilities_are_seen);
        TEST(a_thread_of_another_user_is_seen);
        TEST(a_process_outlives_its_first_thread);
        TEST(a_thread_that_has_ended_is_nobodys);
        TEST(nor_one_that_its_tracer_keeps);
        TEST(another_user_namespace_is_seen);
        TEST(another_pid_namespace_is_seen);
        TEST(kernel_threads_are_seen);
        TEST(a_tracer_is_seen);
        TEST(a_parent_is_not_taken_for_a_tracer);
        TEST(reading_stops_at_so_many_threads);
        TEST(reading_leaves_no_descriptor);
        TEST(rule_allows_what_is_clean);
        TEST(rule_needs_every_fact);
        TEST(rule_compares_all_three_ids);
        TEST(rule_refuses_any_capability);
        TEST(rule_without_groups_allows_nothing);
        return g_test_run();
}

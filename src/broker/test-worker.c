/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The worker, with this test in the place of the service, and programs that are not nice to it. */

#include "broker/worker.h"

/* before GLib, which has MIN and MAX of its own */
#include "broker/broker-wire.h"
#include "broker/listener.h"
#include "core/fd-message.h"
#include "machine.h"

#include <fcntl.h>
#include <glib.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WAIT_KILLABLE (1u << 5)

typedef struct Fixture {
        int listener, page;
        ListenerPage *seen;
        pid_t worker;
        int socket, lease;
        pid_t task;
        int talk; /* the task's results */
        BrokerRequest q;
        size_t n_attr;
        int target, group;
} Fixture;

typedef long (*Play)(int talk);

/* ---- a task ---- */

/* Forwards a second system call too, as a client that is not honest might. */
static int filter_install(void) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 1, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = G_N_ELEMENTS(code), .filter = code };

        g_assert_cmpint(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
        return (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                             SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE, &program);
}

static _Noreturn void task_run(Play play, int talk) {
        int listener = filter_install();
        long result;

        if (fd_message_send(talk, "", 1, &listener, 1, 0) < 0)
                _exit(1);
        close(listener);
        result = play(talk);
        _exit(write(talk, &result, sizeof(result)) == sizeof(result) ? 0 : 1);
}

static long call(const void *attr, int pid, int cpu, int group, unsigned long flags) {
        long r = syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);

        return r < 0 ? -errno : r;
}

static void task_start(Fixture *f, Play play) {
        int pair[2], how;
        size_t n_fds;
        char byte;

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
        f->task = fork();
        if (f->task == 0)
                task_run(play, pair[1]);
        close(pair[1]);
        f->talk = pair[0];
        g_assert_cmpint(fd_message_receive(f->talk, &byte, 1, &f->listener, 1, &n_fds, 0, &how), ==,
                        1);
        g_assert_cmpint(n_fds, ==, 1);
        g_assert_true(listener_is(f->listener));
}

/* What the call returned, or whatever the play did. */
static long task_result(Fixture *f) {
        long result;

        g_assert_cmpint(read(f->talk, &result, sizeof(result)), ==, sizeof(result));
        return result;
}

static void task_kill(Fixture *f) {
        if (f->task > 0) {
                (void) kill(f->task, SIGKILL);
                g_assert_cmpint(waitpid(f->task, NULL, 0), ==, f->task);
        }
        f->task = 0;
}

/* ---- its worker ---- */

static void worker_start(Fixture *f) {
        int pair[2], lease[2];

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
        g_assert_cmpint(pipe2(lease, O_CLOEXEC), ==, 0);
        f->worker = fork();
        if (f->worker == 0)
                worker_run(pair[1], lease[0]);
        close(pair[1]);
        close(lease[0]);
        f->socket = pair[0];
        f->lease = lease[1];
        g_assert_cmpint(broker_wire_begin(f->socket, f->listener, f->page, -1), ==, 0);
}

static int worker_wait(Fixture *f) {
        int status;

        g_assert_cmpint(waitpid(f->worker, &status, 0), ==, f->worker);
        f->worker = 0;
        f->socket = close_fd(f->socket);
        f->lease = close_fd(f->lease);
        return status;
}

static void start(Fixture *f, Play play) {
        task_start(f, play);
        g_assert_cmpint(listener_page_new(&f->page), ==, 0);
        g_assert_cmpint(listener_page_map(f->page, &f->seen), ==, 0);
        worker_start(f);
}

static void set_up(Fixture *f, const void *data) {
        *f = (Fixture){ .listener = -1,
                        .page = -1,
                        .socket = -1,
                        .lease = -1,
                        .talk = -1,
                        .target = -1,
                        .group = -1 };
}

static void tear_down(Fixture *f, const void *data) {
        f->lease = close_fd(f->lease);
        if (f->worker > 0)
                (void) worker_wait(f);
        task_kill(f);
        close_fd(f->listener);
        close_fd(f->page);
        close_fd(f->talk);
        close_fd(f->target);
        close_fd(f->group);
        if (f->seen)
                (void) munmap(f->seen, sizeof(*f->seen));
}

/* ---- the service ---- */

static void hear(Fixture *f) {
        struct pollfd p = { .fd = f->socket, .events = POLLIN };

        g_assert_cmpint(poll(&p, 1, -1), ==, 1);
        f->target = close_fd(f->target);
        f->group = close_fd(f->group);
        g_assert_cmpint(broker_request_receive(f->socket, &f->q, &f->n_attr, &f->target, &f->group),
                        ==, 1);
}

static void say(Fixture *f, BrokerReply a, int fd) {
        g_assert_cmpint(broker_reply_send(f->socket, &a, fd), ==, 0);
}

static void say_error(Fixture *f, int error) {
        say(f, (BrokerReply){ .answer = BROKER_FAIL, .error = error }, -1);
}

/* ---- what the service hears ---- */

static struct perf_event_attr attr_of(uint32_t size) {
        return (struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE, .size = size };
}

static long play_own(int talk) {
        struct perf_event_attr a = attr_of(sizeof(a));

        a.config = PERF_COUNT_SW_DUMMY;
        return call(&a, 0, 3, -1, PERF_FLAG_FD_CLOEXEC);
}

static void tells_whose_call_it_is_and_of_what(Fixture *f, const void *data) {
        struct perf_event_attr a;

        start(f, play_own);
        hear(f);
        g_assert_cmpint(f->q.task.tid, ==, f->task);
        g_assert_cmpint(f->q.task.process, ==, f->task);
        for (int i = 0; i < 3; i++) {
                g_assert_cmpint(f->q.task.uid[i], ==, getuid());
                g_assert_cmpint(f->q.task.gid[i], ==, getgid());
        }
        g_assert_true(f->q.task.no_new_privs);
        g_assert_true(f->q.task.same_namespaces);
        g_assert_cmpint(f->q.target, ==, BROKER_TASK);
        g_assert_cmpint(f->q.tid, ==, f->task);
        g_assert_cmpint(f->target, >=, 0);
        g_assert_cmpint(f->group, ==, -1);
        g_assert_cmpint(f->q.cpu, ==, 3);
        g_assert_cmpint((int) f->q.flags, ==, PERF_FLAG_FD_CLOEXEC);
        g_assert_cmpint(f->n_attr, ==, sizeof(a));
        memcpy(&a, f->q.attr, sizeof(a));
        g_assert_cmpint((int) a.config, ==, PERF_COUNT_SW_DUMMY);
        say_error(f, EXDEV);
        g_assert_cmpint(task_result(f), ==, -EXDEV);
}

static long play_threads(int talk) {
        struct perf_event_attr a = attr_of(sizeof(a));

        (void) call(&a, getppid(), -1, -1, 0);
        (void) call(&a, INT32_MAX, -1, -1, 0);
        (void) call(&a, -2, -1, -1, 0);
        return call(&a, -1, 0, -1, 0);
}

static void tells_other_processes_from_none_and_all(Fixture *f, const void *data) {
        static const BrokerTarget expected[] = { BROKER_OTHER, BROKER_NOBODY, BROKER_NOBODY,
                                                 BROKER_CPU };

        start(f, play_threads);
        for (size_t i = 0; i < G_N_ELEMENTS(expected); i++) {
                hear(f);
                g_assert_cmpint(f->q.target, ==, expected[i]);
                g_assert_cmpint(f->target >= 0, ==, expected[i] == BROKER_OTHER);
                say_error(f, ESRCH);
        }
        g_assert_cmpint(task_result(f), ==, -ESRCH);
}

static long play_group(int talk) {
        struct perf_event_attr a = attr_of(sizeof(a));
        int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
        long r = call(&a, 0, -1, 4242, 0);

        if (r != -EBADF)
                return r;
        return call(&a, file, 0, file, PERF_FLAG_PID_CGROUP);
}

static void brings_the_descriptors_of_group_and_cgroup(Fixture *f, const void *data) {
        char path[64], is[64] = "";

        start(f, play_group);
        hear(f);
        g_assert_cmpint(f->q.target, ==, BROKER_CGROUP);
        g_snprintf(path, sizeof(path), "/proc/self/fd/%d", f->group);
        g_assert_cmpint(readlink(path, is, sizeof(is) - 1), >, 0);
        g_assert_cmpstr(is, ==, "/dev/null");
        g_assert_cmpint(f->target, >=, 0);
        say_error(f, EBADF);
        g_assert_cmpint(task_result(f), ==, -EBADF);
}

/* ---- what the task gets ---- */

static long play_keep(int talk) {
        struct perf_event_attr a = attr_of(sizeof(a));
        long first = call(&a, 0, -1, -1, 0), second = call(&a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

        if (first < 0 || second < 0)
                return -1;
        return fcntl((int) first, F_GETFD) == 0 && fcntl((int) second, F_GETFD) == FD_CLOEXEC;
}

static void gives_descriptors_as_asked(Fixture *f, const void *data) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        start(f, play_keep);
        for (int i = 0; i < 2; i++) {
                hear(f);
                say(f, (BrokerReply){ .answer = BROKER_GIVE }, null);
        }
        g_assert_cmpint(task_result(f), ==, 1);
        close(null);
}

static long play_sizes(int talk) {
        struct perf_event_attr *a =
                mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *edge = (char *) a + 4096 - 64;
        uint32_t size = 64;

        if (call(NULL, 0, -1, -1, 0) != -EFAULT)
                return 1;
        memcpy(edge + offsetof(struct perf_event_attr, size), &size, sizeof(size));
        (void) munmap((char *) a + 4096, 4096);
        if (call(edge, 0, -1, -1, 0) != -EXDEV)
                return 2;
        size = 65;
        memcpy(edge + offsetof(struct perf_event_attr, size), &size, sizeof(size));
        if (call(edge, 0, -1, -1, 0) != -EFAULT)
                return 3;
        a->size = 13;
        if (call(a, 0, -1, -1, 0) != -E2BIG || a->size != 136)
                return 4;
        return 0;
}

static void reads_what_there_is_and_writes_the_size_that_is_expected(Fixture *f, const void *data) {
        start(f, play_sizes);
        hear(f);
        g_assert_cmpint(f->n_attr, ==, 64);
        say_error(f, EXDEV);
        hear(f);
        g_assert_cmpint(f->n_attr, <, 64);
        say(f, (BrokerReply){ .answer = BROKER_FAIL, .error = E2BIG, .size = 136 }, -1);
        g_assert_cmpint(task_result(f), ==, 0);
}

static long play_pass(int talk) {
        struct perf_event_attr a = attr_of(sizeof(a));

        a.type = UINT32_MAX; /* no PMU has it */
        a.exclude_kernel = a.exclude_hv = 1;
        return call(&a, 0, -1, -1, 0);
}

static void what_is_the_kernels_the_kernel_answers(Fixture *f, const void *data) {
        start(f, play_pass);
        hear(f);
        say(f, (BrokerReply){ .answer = BROKER_PASS }, -1);
        g_assert_cmpint(task_result(f), ==, -ENOENT);
}

static long play_other_call(int talk) {
        return syscall(SYS_getpgid, 0) == getpgrp();
}

static void other_system_calls_are_the_kernels(Fixture *f, const void *data) {
        start(f, play_other_call);
        g_assert_cmpint(task_result(f), ==, 1);
}

/* ---- ends ---- */

static void a_worker_that_is_killed_has_a_successor(Fixture *f, const void *data) {
        start(f, play_own);
        hear(f);
        (void) kill(f->worker, SIGKILL);
        (void) worker_wait(f);
        worker_start(f);
        hear(f);
        g_assert_cmpint(f->q.task.tid, ==, f->task);
        say_error(f, EXDEV);
        g_assert_cmpint(task_result(f), ==, -EXDEV);
}

static void a_worker_ends_with_its_lease_and_its_call_waits(Fixture *f, const void *data) {
        start(f, play_own);
        hear(f);
        f->lease = close_fd(f->lease);
        g_assert_true(WIFSIGNALED(worker_wait(f)));
        g_assert_cmpint((int) (f->seen->call.id != 0), ==, 1);
        worker_start(f);
        hear(f);
        say_error(f, EXDEV);
        g_assert_cmpint(task_result(f), ==, -EXDEV);
}

static long play_nothing(int talk) {
        char byte;

        return read(talk, &byte, 1);
}

static void a_worker_that_waits_ends_with_its_lease(Fixture *f, const void *data) {
        start(f, play_nothing);
        f->lease = close_fd(f->lease);
        (void) worker_wait(f);
}

static void a_worker_ends_with_the_last_task(Fixture *f, const void *data) {
        start(f, play_nothing);
        task_kill(f);
        if (listener_has_ended(f->listener))
                (void) worker_wait(f);
}

static void a_task_that_dies_while_it_is_answered_harms_nobody(Fixture *f, const void *data) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        start(f, play_own);
        hear(f);
        task_kill(f);
        say(f, (BrokerReply){ .answer = BROKER_GIVE }, null);
        close(null);
        f->lease = close_fd(f->lease);
        (void) worker_wait(f);
}

static void other_files_are_no_listeners(void) {
        int fds[] = { open("/dev/null", O_RDONLY | O_CLOEXEC),
                      memfd_create("anon_inode:seccomp notify", MFD_CLOEXEC),
                      epoll_create1(EPOLL_CLOEXEC) };

        for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
                g_assert_false(listener_is(fds[i]));
                close(fds[i]);
        }
        g_assert_false(listener_is(-1));
}

#define CASE(path, f) g_test_add("/worker/" path, Fixture, NULL, set_up, f, tear_down)

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC | MACHINE_EVENTS))
                return 0;
        g_test_init(&argc, &argv, NULL);
        CASE("whose", tells_whose_call_it_is_and_of_what);
        CASE("targets", tells_other_processes_from_none_and_all);
        CASE("descriptors", brings_the_descriptors_of_group_and_cgroup);
        CASE("gives", gives_descriptors_as_asked);
        CASE("sizes", reads_what_there_is_and_writes_the_size_that_is_expected);
        CASE("pass", what_is_the_kernels_the_kernel_answers);
        CASE("other-calls", other_system_calls_are_the_kernels);
        CASE("killed", a_worker_that_is_killed_has_a_successor);
        CASE("lease", a_worker_ends_with_its_lease_and_its_call_waits);
        CASE("lease-idle", a_worker_that_waits_ends_with_its_lease);
        CASE("last-task", a_worker_ends_with_the_last_task);
        CASE("dies", a_task_that_dies_while_it_is_answered_harms_nobody);
        g_test_add_func("/worker/no-listener", other_files_are_no_listeners);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Every error of AttachProcess and DetachProcess; most are those of pmc_attach(3). */

#include "attach-util.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static pid_t dead_pid(void) {
        pid_t pid = fork();

        if (pid == 0)
                _exit(0);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
        return pid;
}

static void test_running(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = unattached_open(alice);

        counter_do(alice, counter, "Start");
        attach_refused(alice, PERFALLOC_ERROR_COUNTER_RUNNING, counter, (uint32_t) writer->pid);
        counter_do(alice, counter, "Stop");
        attach(alice, counter, writer->pid);
}

static void test_already_attached(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        g_autofree char *counter = unattached_open(alice), *other = unattached_open(alice);

        attach(alice, counter, parent->pid);
        attach_refused(alice, PERFALLOC_ERROR_ALREADY_ATTACHED, counter, (uint32_t) parent->pid);
        attach(alice, counter, child); /* no descendants were attached */
        attach_refused(alice, PERFALLOC_ERROR_ALREADY_ATTACHED, counter, (uint32_t) child);
        assert_targets(alice, counter, 2, parent->pid, child);

        /* a tree has its descendants in it, */
        attach_tree(alice, other, parent->pid);
        attach_refused(alice, PERFALLOC_ERROR_ALREADY_ATTACHED, other, (uint32_t) child);
        detach(alice, other, parent->pid);
        /* and cannot be attached beside one of them */
        attach(alice, other, child);
        client_refused(alice, PERFALLOC_ERROR_ALREADY_ATTACHED, other, COUNTER, "AttachProcess",
                       "ua{sv}", (uint32_t) parent->pid, 1, "descendants", "b", true);
        assert_targets(alice, other, 1, child);
}

static void test_wrong_scope(void) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = counter_open(root, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu",
                                                "start", "b", false);

        attach_refused(root, PERFALLOC_ERROR_WRONG_SCOPE, counter, (uint32_t) writer->pid);
        client_refused(root, PERFALLOC_ERROR_WRONG_SCOPE, counter, COUNTER, "DetachProcess", "u",
                       (uint32_t) writer->pid);
}

/* As in perf_event_open(2) and pmc_attach(3). */
static void test_zero(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *counter = unattached_open(root);

        client_refused(root, PERFALLOC_ERROR_NOT_ATTACHED, counter, COUNTER, "DetachProcess", "u",
                       0);
        sd_bus_message_unref(client_call(root, counter, COUNTER, "AttachProcess", "ua{sv}", 0, 0));
        assert_targets(root, counter, 1, getpid());
        sd_bus_message_unref(client_call(root, counter, COUNTER, "DetachProcess", "u", 0));
        assert_targets(root, counter, 0);
}

static void test_invalid_process(void) {
        g_autoptr(Client) alice = client_new("alice");
        const int n = 1;
        g_autoptr(Actor) threads = actor_new("alice", play_threads, &n);
        g_autofree char *counter = unattached_open(alice), *path = NULL;
        g_autoptr(GDir) dir = NULL;

        attach_refused(alice, PERFALLOC_ERROR_INVALID_PROCESS, counter, UINT32_MAX);
        attach_refused(alice, PERFALLOC_ERROR_INVALID_PROCESS, counter, 1u << 31);
        attach_refused(alice, PERFALLOC_ERROR_INVALID_PROCESS, counter, 4194305);
        client_refused(alice, PERFALLOC_ERROR_INVALID_PROCESS, counter, COUNTER, "DetachProcess",
                       "u", UINT32_MAX);

        /* a thread is no process */
        g_assert_cmpint(actor_hear(threads), ==, 'r');
        path = g_strdup_printf("/proc/%d/task", threads->pid);
        dir = g_dir_open(path, 0, NULL);
        for (const char *name; (name = g_dir_read_name(dir));)
                if (atoi(name) != threads->pid)
                        attach_refused(alice, PERFALLOC_ERROR_INVALID_PROCESS, counter,
                                       (uint32_t) atoi(name));
}

static void test_no_such_process(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *counter = unattached_open(alice);
        uint32_t pid = (uint32_t) dead_pid();
        pid_t zombie;

        attach_refused(alice, PERFALLOC_ERROR_NO_SUCH_PROCESS, counter, pid);
        client_refused(alice, PERFALLOC_ERROR_NO_SUCH_PROCESS, counter, COUNTER, "DetachProcess",
                       "u", pid);

        zombie = fork();
        if (zombie == 0)
                _exit(0);
        g_assert_cmpint(waitid(P_PID, (id_t) zombie, &(siginfo_t){}, WEXITED | WNOWAIT), ==, 0);
        attach_refused(root, PERFALLOC_ERROR_NO_SUCH_PROCESS, counter, (uint32_t) zombie);
        attach_refused(alice, PERFALLOC_ERROR_NO_SUCH_PROCESS, counter, (uint32_t) zombie);
        client_refused(root, PERFALLOC_ERROR_NO_SUCH_PROCESS, MANAGER, "OpenCounters", "asa{sv}", 1,
                       "page-faults", 1, "pid", "u", (uint32_t) zombie);
        g_assert_cmpint(waitpid(zombie, NULL, 0), ==, zombie);
}

static void test_not_attached(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        g_autofree char *counter = unattached_open(alice);

        client_refused(alice, PERFALLOC_ERROR_NOT_ATTACHED, counter, COUNTER, "DetachProcess", "u",
                       (uint32_t) parent->pid);
        attach_tree(alice, counter, parent->pid);
        client_refused(alice, PERFALLOC_ERROR_NOT_ATTACHED, counter, COUNTER, "DetachProcess", "u",
                       (uint32_t) child);
        detach(alice, counter, parent->pid);
}

static void test_counters_are_taken(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = unattached_open(alice);
        int fds[4];

        for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
                fds[i] = breakpoint_open(writer->pid, -1);
                g_assert_cmpint(fds[i], >=, 0);
        }
        attach_refused(alice, PERFALLOC_ERROR_BUSY, counter, (uint32_t) writer->pid);
        g_assert_nonnull(strstr(alice->refusal, "breakpoint"));
        assert_targets(alice, counter, 0);
        close(fds[0]);
        attach(alice, counter, writer->pid);
        for (size_t i = 1; i < G_N_ELEMENTS(fds); i++)
                close(fds[i]);
}

static void test_traced(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) writer = writer_new("alice"), parent = parent_new("alice", &child);
        g_autofree char *counter = unattached_open(alice);

        g_assert_cmpint(ptrace(PTRACE_SEIZE, writer->pid, NULL, NULL), ==, 0);
        attach_refused(alice, PERFALLOC_ERROR_BUSY, counter, (uint32_t) writer->pid);
        g_assert_nonnull(strstr(alice->refusal, "traced"));

        /* one descendant is enough */
        g_assert_cmpint(ptrace(PTRACE_SEIZE, child, NULL, NULL), ==, 0);
        client_refused(alice, PERFALLOC_ERROR_BUSY, counter, COUNTER, "AttachProcess", "ua{sv}",
                       (uint32_t) parent->pid, 1, "descendants", "b", true);
        assert_targets(alice, counter, 0);
}

static void test_handed_out(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) one = writer_new("alice"), two = writer_new("alice");
        g_autofree char *counter = unattached_open(alice);
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t data[3];
        int fd;

        attach(alice, counter, one->pid);
        reply = client_call(alice, counter, COUNTER, "GetFds", NULL);
        g_assert_cmpint(sd_bus_message_read(reply, "ah", 1, &fd), >, 0);
        counter_do(alice, counter, "Start");
        writer_write(one);
        g_assert_cmpint(read(fd, data, sizeof(data)), ==, sizeof(data));
        g_assert_cmpuint(data[0], ==, hits(100));
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(100));

        counter_do(alice, counter, "Stop");
        attach_refused(alice, PERFALLOC_ERROR_NOT_PERMITTED, counter, (uint32_t) two->pid);
        g_assert_nonnull(strstr(alice->refusal, "handed out"));
        detach(alice, counter, one->pid);
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(100));
}

static void test_not_owner(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autoptr(Actor) writer = writer_new("bob");
        g_autofree char *counter = unattached_open(alice);

        attach_refused(bob, PERFALLOC_ERROR_NOT_OWNER, counter, (uint32_t) writer->pid);
        client_refused(bob, PERFALLOC_ERROR_NOT_OWNER, counter, COUNTER, "DetachProcess", "u",
                       (uint32_t) writer->pid);
        client_refused(bob, PERFALLOC_ERROR_NOT_OWNER, counter, COUNTER, "GetFds", NULL);
}

static void test_bad_options(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice"), other = writer_new("alice");
        g_autofree char *counter = unattached_open(alice), *pinned = NULL;
        uint32_t pid = (uint32_t) writer->pid;
        int pidfd = (int) syscall(SYS_pidfd_open, writer->pid, 0);
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, counter, COUNTER, "AttachProcess",
                       "ua{sv}", pid, 1, "children", "b", true);
        g_assert_nonnull(strstr(alice->refusal, "children"));
        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, counter, COUNTER, "AttachProcess",
                       "ua{sv}", pid, 1, "descendants", "u", 1);
        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, counter, COUNTER, "AttachProcess",
                       "ua{sv}", pid, 2, "descendants", "b", true, "descendants", "b", true);
        client_refused(alice, PERFALLOC_ERROR_BAD_DESCRIPTOR, counter, COUNTER, "AttachProcess",
                       "ua{sv}", pid, 1, "pidfd", "h", null);
        /* the descriptor identifies the process */
        client_refused(alice, PERFALLOC_ERROR_INVALID_PROCESS, counter, COUNTER, "AttachProcess",
                       "ua{sv}", (uint32_t) other->pid, 1, "pidfd", "h", pidfd);
        sd_bus_message_unref(client_call(alice, counter, COUNTER, "AttachProcess", "ua{sv}", pid, 1,
                                         "pidfd", "h", pidfd));
        assert_targets(alice, counter, 1, writer->pid);

        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, MANAGER, "OpenCounters", "asa{sv}", 1,
                       "page-faults:u", 2, "attach", "b", false, "pid", "u", pid);
        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, MANAGER, "OpenCounters", "asa{sv}", 1,
                       "page-faults:u", 2, "attach", "b", true, "scope", "s", "cpu");
        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, MANAGER, "OpenCounters", "asa{sv}", 1,
                       "page-faults:u", 2, "pinned", "b", true, "descendants", "b", true);
        pinned = counter_open(alice, "page-faults:u", "a{sv}", 3, "pinned", "b", true, "attach",
                              "b", false, "start", "b", false);
        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, pinned, COUNTER, "AttachProcess", "ua{sv}",
                       pid, 1, "descendants", "b", true);
        close(null);
        close(pidfd);
}

static void test_a_pidfd_outlasts_its_number(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = unattached_open(alice);
        int pidfd = (int) syscall(SYS_pidfd_open, writer->pid, 0);
        uint32_t pid = (uint32_t) writer->pid;

        g_assert_cmpint(actor_join(writer), ==, 0);
        client_refused(alice, PERFALLOC_ERROR_NO_SUCH_PROCESS, counter, COUNTER, "AttachProcess",
                       "ua{sv}", pid, 1, "pidfd", "h", pidfd);
        close(pidfd);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/attach/error/running", test_running);
        g_test_add_func("/attach/error/already-attached", test_already_attached);
        g_test_add_func("/attach/error/wrong-scope", test_wrong_scope);
        g_test_add_func("/attach/0-is-the-caller", test_zero);
        g_test_add_func("/attach/error/invalid-process", test_invalid_process);
        g_test_add_func("/attach/error/no-such-process", test_no_such_process);
        g_test_add_func("/attach/error/not-attached", test_not_attached);
        g_test_add_func("/attach/error/counters-are-taken", test_counters_are_taken);
        g_test_add_func("/attach/error/traced", test_traced);
        g_test_add_func("/attach/error/handed-out", test_handed_out);
        g_test_add_func("/attach/error/not-owner", test_not_owner);
        g_test_add_func("/attach/error/bad-options", test_bad_options);
        g_test_add_func("/attach/a-pidfd-outlasts-its-number", test_a_pidfd_outlasts_its_number);
        return g_test_run();
}

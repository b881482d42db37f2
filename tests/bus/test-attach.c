/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* AttachProcess and DetachProcess: every rule, every error, and sums that are exact. */

#include "bus-util.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define UNATTACHED "a{sv}", 2, "attach", "b", false, "start", "b", false

/* ---- targets ---- */

/* Writes 100 times whenever it is told to. */
static int play_writer(int fd, const void *data) {
        while (act_hear(fd)) {
                watched_write(0, 100);
                act_say(fd, 'w');
        }
        return 0;
}

static void writer_write(Actor *a) {
        actor_tell(a, 'w');
        g_assert_cmpint(actor_hear(a), ==, 'w');
}

static Actor *writer_new(const char *user) {
        Actor *a = actor_new(user, play_writer, NULL);

        writer_write(a); /* it is up */
        return a;
}

/* A process that has a child, whose number it tells. Told anything, both write 100 times and go on.
 */
static int play_parent(int fd, const void *data) {
        int pipes[2][2];
        pid_t child;

        if (pipe(pipes[0]) < 0 || pipe(pipes[1]) < 0)
                return 1;
        child = fork();
        if (child == 0) {
                char what;

                close(pipes[0][1]);
                while (read(pipes[0][0], &what, 1) == 1) {
                        watched_write(0, 100);
                        if (write(pipes[1][1], &what, 1) != 1)
                                _exit(1);
                }
                _exit(0);
        }
        if (write(fd, &child, sizeof(child)) != sizeof(child))
                return 1;
        for (char what; (what = act_hear(fd));) {
                watched_write(0, 100);
                if (write(pipes[0][1], &what, 1) != 1 || read(pipes[1][0], &what, 1) != 1)
                        return 1;
                act_say(fd, 'w');
        }
        return 0;
}

static Actor *parent_new(const char *user, pid_t *ret_child) {
        Actor *a = actor_new(user, play_parent, NULL);

        g_assert_cmpint(read(a->fd, ret_child, sizeof(*ret_child)), ==, sizeof(*ret_child));
        return a;
}

static void *sleeper(void *userdata) {
        for (;;)
                pause();
        return NULL;
}

/* Has as many more threads as it is told. */
static int play_threads(int fd, const void *data) {
        for (int i = *(const int *) data; i > 0; i--) {
                pthread_t thread;

                if (pthread_create(&thread, NULL, sleeper, NULL) != 0)
                        return 1;
        }
        act_say(fd, 'r');
        (void) act_hear(fd);
        return 0;
}

/* ---- what is asked ---- */

static void attach(Client *c, const char *counter, pid_t pid) {
        sd_bus_message_unref(
                client_call(c, counter, COUNTER, "AttachProcess", "ua{sv}", (uint32_t) pid, 0));
}

static void attach_tree(Client *c, const char *counter, pid_t pid) {
        sd_bus_message_unref(client_call(c, counter, COUNTER, "AttachProcess", "ua{sv}",
                                         (uint32_t) pid, 1, "descendants", "b", true));
}

static void detach(Client *c, const char *counter, pid_t pid) {
        sd_bus_message_unref(
                client_call(c, counter, COUNTER, "DetachProcess", "u", (uint32_t) pid));
}

static void attach_refused(Client *c, const char *error, const char *counter, uint32_t pid) {
        client_refused(c, error, counter, COUNTER, "AttachProcess", "ua{sv}", pid, 0);
}

static char *unattached_open(Client *c) {
        g_autofree char *event = watched_event(0);

        return counter_open(c, event, UNATTACHED);
}

static void assert_targets(Client *c, const char *counter, unsigned n, ...) {
        g_autoptr(sd_bus_message) reply = client_call(c, counter, "org.freedesktop.DBus.Properties",
                                                      "Get", "ss", COUNTER, "Targets");
        uint32_t pid;
        va_list ap;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'v', "au"), >, 0);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "u"), >, 0);
        va_start(ap, n);
        while (n-- > 0) {
                g_assert_cmpint(sd_bus_message_read_basic(reply, 'u', &pid), >, 0);
                g_assert_cmpint((pid_t) pid, ==, va_arg(ap, pid_t));
        }
        va_end(ap);
        g_assert_cmpint(sd_bus_message_read_basic(reply, 'u', &pid), ==, 0);
}

static pid_t dead_pid(void) {
        pid_t pid = fork();

        if (pid == 0)
                _exit(0);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
        return pid;
}

/* ---- attaching and detaching ---- */

static void test_counts_what_is_attached(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = unattached_open(alice);

        g_assert_true(counter_is(alice, counter, "stopped"));
        attach(alice, counter, writer->pid);
        writer_write(writer); /* stopped as yet */
        g_assert_cmpuint(counter_value(alice, counter), ==, 0);
        counter_do(alice, counter, "Start");
        writer_write(writer);
        g_assert_cmpuint(counter_value(alice, counter), ==, 100);
}

static void test_without_a_target_counts_nothing(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *counter = unattached_open(alice);

        assert_targets(alice, counter, 0);
        counter_do(alice, counter, "Start");
        watched_write(0, 100);
        g_assert_cmpuint(counter_value(alice, counter), ==, 0);
}

static void test_several_targets_add_up(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) one = writer_new("alice"), two = writer_new("alice");
        g_autofree char *counter = unattached_open(alice);

        attach(alice, counter, one->pid);
        attach(alice, counter, two->pid);
        assert_targets(alice, counter, 2, one->pid, two->pid);
        counter_do(alice, counter, "Start");
        writer_write(one);
        writer_write(two);
        writer_write(two);
        g_assert_cmpuint(counter_value(alice, counter), ==, 300);
}

static void test_detached_keeps_its_value(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) one = writer_new("alice"), two = writer_new("alice");
        g_autofree char *counter = unattached_open(alice);

        attach(alice, counter, one->pid);
        attach(alice, counter, two->pid);
        counter_do(alice, counter, "Start");
        writer_write(one);
        writer_write(two);
        detach(alice, counter, one->pid);
        assert_targets(alice, counter, 1, two->pid);
        writer_write(one);
        writer_write(two);
        g_assert_cmpuint(counter_value(alice, counter), ==, 300);
        detach(alice, counter, two->pid);
        g_assert_cmpuint(counter_value(alice, counter), ==, 300);

        /* and may be attached anew */
        counter_do(alice, counter, "Stop");
        attach(alice, counter, one->pid);
        counter_do(alice, counter, "Start");
        writer_write(one);
        g_assert_cmpuint(counter_value(alice, counter), ==, 400);
}

static void test_rows_add_up_after_a_detach(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) one = writer_new("alice"), two = writer_new("alice");
        g_autofree char *counter = unattached_open(alice);
        g_autoptr(sd_bus_message) rows = NULL;
        uint64_t sum = 0, value;
        uint32_t tid;
        int32_t cpu;

        attach(alice, counter, one->pid);
        attach(alice, counter, two->pid);
        counter_do(alice, counter, "Start");
        writer_write(one);
        writer_write(two);
        detach(alice, counter, one->pid);
        rows = client_call(alice, counter, COUNTER, "ReadEach", NULL);
        g_assert_cmpint(sd_bus_message_enter_container(rows, 'a', "(iuttts)"), >, 0);
        while (sd_bus_message_read(rows, "(iuttts)", &cpu, &tid, &value, NULL, NULL, NULL) > 0) {
                g_assert_true(tid == 0 || tid == (uint32_t) two->pid);
                g_assert_cmpint(cpu, ==, -1);
                sum += value;
        }
        g_assert_cmpuint(sum, ==, 200);
}

static void test_ended_target_stays_in_the_sum(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) one = writer_new("alice"), two = writer_new("alice");
        g_autofree char *counter = unattached_open(alice);
        pid_t pid = one->pid;

        attach(alice, counter, one->pid);
        counter_do(alice, counter, "Start");
        writer_write(one);
        g_assert_cmpint(actor_join(one), ==, 0);
        g_assert_cmpuint(counter_value(alice, counter), ==, 100);
        assert_targets(alice, counter, 0);

        counter_do(alice, counter, "Stop");
        attach(alice, counter, two->pid);
        counter_do(alice, counter, "Start");
        writer_write(two);
        g_assert_cmpuint(counter_value(alice, counter), ==, 200);
        client_refused(alice, PERFALLOC_ERROR_NO_SUCH_PROCESS, counter, COUNTER, "DetachProcess",
                       "u", (uint32_t) pid);
}

static void test_a_group_attaches_as_one(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *event = watched_event(0), *other = watched_event(1);
        g_autoptr(sd_bus_message) reply =
                client_call(alice, MANAGER, "OpenCounters", "asa{sv}", 2, event, other, 3, "group",
                            "b", true, "attach", "b", false, "start", "b", false);
        const char *leader, *sibling;

        g_assert_cmpint(sd_bus_message_read(reply, "ao", 2, &leader, &sibling), >, 0);
        attach(alice, sibling, writer->pid);
        assert_targets(alice, leader, 1, writer->pid);
        counter_do(alice, sibling, "Start");
        writer_write(writer);
        g_assert_cmpuint(counter_value(alice, leader), ==, 100);
}

static void test_threads_all_count(void) {
        g_autoptr(Client) alice = client_new("alice");
        const int n = 40;
        g_autoptr(Actor) threads = actor_new("alice", play_threads, &n);
        g_autofree char *counter = unattached_open(alice);
        g_autoptr(sd_bus_message) rows = NULL;
        int n_rows = 0;

        g_assert_cmpint(actor_hear(threads), ==, 'r');
        attach(alice, counter, threads->pid);
        rows = client_call(alice, counter, COUNTER, "ReadEach", NULL);
        g_assert_cmpint(sd_bus_message_enter_container(rows, 'a', "(iuttts)"), >, 0);
        while (sd_bus_message_skip(rows, "(iuttts)") > 0)
                n_rows++;
        g_assert_cmpint(n_rows, ==, n + 1);
}

/* ---- the errors of pmc_attach(3) ---- */

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
        attach(alice, counter, child); /* nobody's descendants were attached */
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

static void test_invalid_process(void) {
        g_autoptr(Client) alice = client_new("alice");
        const int n = 1;
        g_autoptr(Actor) threads = actor_new("alice", play_threads, &n);
        g_autofree char *counter = unattached_open(alice), *path = NULL;
        g_autoptr(GDir) dir = NULL;

        attach_refused(alice, PERFALLOC_ERROR_INVALID_PROCESS, counter, 0);
        attach_refused(alice, PERFALLOC_ERROR_INVALID_PROCESS, counter, UINT32_MAX);
        attach_refused(alice, PERFALLOC_ERROR_INVALID_PROCESS, counter, 1u << 31);
        attach_refused(alice, PERFALLOC_ERROR_INVALID_PROCESS, counter, 4194305);
        client_refused(alice, PERFALLOC_ERROR_INVALID_PROCESS, counter, COUNTER, "DetachProcess",
                       "u", 0);

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

        /* a descendant is enough */
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
        g_assert_cmpuint(data[0], ==, 100);
        g_assert_cmpuint(counter_value(alice, counter), ==, 100);

        counter_do(alice, counter, "Stop");
        attach_refused(alice, PERFALLOC_ERROR_NOT_PERMITTED, counter, (uint32_t) two->pid);
        g_assert_nonnull(strstr(alice->refusal, "handed out"));
        detach(alice, counter, one->pid);
        g_assert_cmpuint(counter_value(alice, counter), ==, 100);
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
        /* the descriptor says which process is meant */
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

/* ---- descendants ---- */

static void test_living_descendants_count(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        g_autofree char *counter = unattached_open(alice);

        attach_tree(alice, counter, parent->pid);
        assert_targets(alice, counter, 1, parent->pid);
        counter_do(alice, counter, "Start");
        writer_write(parent);
        g_assert_cmpuint(counter_value(alice, counter), ==, 200);
        detach(alice, counter, parent->pid);
        writer_write(parent);
        g_assert_cmpuint(counter_value(alice, counter), ==, 200);
}

static void test_living_descendants_count_at_opening(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        g_autofree char *event = watched_event(0);
        g_autofree char *counter = counter_open(alice, event, "a{sv}", 2, "pid", "u",
                                                (uint32_t) parent->pid, "descendants", "b", true);
        g_autofree char *alone =
                counter_open(alice, event, "a{sv}", 1, "pid", "u", (uint32_t) parent->pid);

        writer_write(parent);
        g_assert_cmpuint(counter_value(alice, counter), ==, 200);
        g_assert_cmpuint(counter_value(alice, alone), ==, 100);
}

static void test_descendants_by_default_as_at_opening(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        g_autofree char *event = watched_event(0);
        g_autofree char *counter = counter_open(alice, event, "a{sv}", 3, "attach", "b", false,
                                                "start", "b", false, "descendants", "b", true);

        attach(alice, counter, parent->pid);
        counter_do(alice, counter, "Start");
        writer_write(parent);
        g_assert_cmpuint(counter_value(alice, counter), ==, 200);
}

/* A storm of births: forkers whose children are born and end all the time, and some of whose
 * children stay. From `go` on everybody who lives, and everybody who is born, writes once, and adds
 * that to what they count themselves. */

#define STORM_FORKERS 6
#define STORM_STAYING 6

typedef struct Storm {
        _Atomic bool go;
        _Atomic uint64_t n_born, n_written;
} Storm;

static void storm_write(Storm *storm) {
        watched_write(0, 1);
        storm->n_written++;
}

static pid_t storm_child(Storm *storm, bool stays) {
        pid_t pid = fork();

        if (pid != 0)
                return pid;
        storm->n_born++;
        while (stays && !storm->go) { /* of their children nobody can be attached himself */
                waitpid(storm_child(storm, false), NULL, 0);
                g_usleep(500);
        }
        if (storm->go)
                storm_write(storm);
        _exit(0);
}

static void *storm_thread(void *userdata) {
        Storm *storm = userdata;

        storm->n_born++;
        if (storm->go)
                storm_write(storm);
        return NULL;
}

/* Who is born before go and sees it afterwards must be counted just as well: so all that is asked
 * is made before it is looked at. */
static void storm_rage(Storm *storm) {
        for (int n = 0; !storm->go; n++) {
                bool stays = n < STORM_STAYING;
                pid_t child = storm_child(storm, stays);
                pthread_t thread;

                if (pthread_create(&thread, NULL, storm_thread, storm) == 0)
                        pthread_join(thread, NULL);
                if (!stays)
                        waitpid(child, NULL, 0);
        }
        storm_write(storm);
        for (int n = 0; n < 3; n++)
                waitpid(storm_child(storm, false), NULL, 0);
        while (wait(NULL) > 0)
                ;
        _exit(0);
}

static int play_storm(int fd, const void *data) {
        Storm *storm = *(Storm *const *) data;

        for (int i = 0; i < STORM_FORKERS; i++)
                if (fork() == 0)
                        storm_rage(storm);
        while (wait(NULL) > 0)
                ;
        act_say(fd, 'd');
        (void) act_hear(fd);
        return 0;
}

/* On a machine that is busy with other things, too, a storm may not stand in time: then nothing was
 * done. */
static bool attach_in_time(Client *c, const char *counter, pid_t pid, bool descendants) {
        uint64_t cookie = client_send(c, counter, COUNTER, "AttachProcess", "ua{sv}",
                                      (uint32_t) pid, 1, "descendants", "b", descendants);
        g_autoptr(sd_bus_message) reply = client_receive(c, cookie);

        if (!sd_bus_message_is_method_error(reply, NULL))
                return true;
        g_assert_cmpstr(sd_bus_message_get_error(reply)->name, ==, PERFALLOC_ERROR_BUSY);
        assert_targets(c, counter, 0);
        return false;
}

static void test_a_storm_of_forks_is_counted_once(void) {
        /* by somebody who may count his own alone, so that everybody in it is looked at */
        g_autoptr(Client) bob = client_new("bob");
        Storm *storm = mmap(NULL, sizeof(*storm), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        for (int round = 0; round < 10; round++) {
                g_autofree char *counter = unattached_open(bob);
                g_autoptr(Actor) actor = NULL;

                *storm = (Storm){};
                actor = actor_new("bob", play_storm, &storm);
                await(storm->n_born > 5 * STORM_FORKERS * STORM_STAYING);
                await(attach_in_time(bob, counter, actor->pid, true));
                counter_do(bob, counter, "Start");
                storm->go = true;
                g_assert_cmpint(actor_hear(actor), ==, 'd');
                g_assert_cmpuint(storm->n_written, >=, STORM_FORKERS * 4);
                g_assert_cmpuint(counter_value(bob, counter), ==, storm->n_written);
                g_assert_cmpint(actor_join(actor), ==, 0);
                counter_do(bob, counter, "Close");
        }
        munmap(storm, sizeof(*storm));
}

/* Threads that start threads, all in one process. */
static void *storm_breeder(void *userdata) {
        Storm *storm = userdata;

        while (!storm->go) {
                pthread_t thread;

                if (pthread_create(&thread, NULL, storm_thread, storm) == 0)
                        pthread_join(thread, NULL);
        }
        storm_write(storm);
        return NULL;
}

static int play_thread_storm(int fd, const void *data) {
        Storm *storm = *(Storm *const *) data;
        pthread_t threads[STORM_FORKERS];

        for (int i = 0; i < STORM_FORKERS; i++)
                if (pthread_create(&threads[i], NULL, storm_breeder, storm) != 0)
                        return 1;
        for (int i = 0; i < STORM_FORKERS; i++)
                pthread_join(threads[i], NULL);
        act_say(fd, 'd');
        (void) act_hear(fd);
        return 0;
}

static void test_a_storm_of_threads_is_counted_once(void) {
        g_autoptr(Client) alice = client_new("alice");
        Storm *storm = mmap(NULL, sizeof(*storm), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        for (int round = 0; round < 10; round++) {
                g_autofree char *counter = unattached_open(alice);
                g_autoptr(Actor) actor = NULL;

                *storm = (Storm){};
                actor = actor_new("alice", play_thread_storm, &storm);
                await(storm->n_born > 100);
                await(attach_in_time(alice, counter, actor->pid, false));
                counter_do(alice, counter, "Start");
                storm->go = true;
                g_assert_cmpint(actor_hear(actor), ==, 'd');
                g_assert_cmpuint(storm->n_written, >=, STORM_FORKERS);
                g_assert_cmpuint(counter_value(alice, counter), ==, storm->n_written);
                g_assert_cmpint(actor_join(actor), ==, 0);
                counter_do(alice, counter, "Close");
        }
        munmap(storm, sizeof(*storm));
}

/* ---- in the middle ---- */

static void test_a_target_that_dies_in_the_middle(void) {
        g_autoptr(Client) bob = client_new("bob");
        unsigned descriptors = service_descriptors();

        for (int i = 0; i < 100; i++) {
                g_autofree char *counter = unattached_open(bob);
                pid_t child;
                g_autoptr(Actor) parent = parent_new("bob", &child);
                uint64_t cookie =
                        client_send(bob, counter, COUNTER, "AttachProcess", "ua{sv}",
                                    (uint32_t) parent->pid, 1, "descendants", "b", i % 2 == 0);
                g_autoptr(sd_bus_message) reply = NULL;

                g_usleep((gulong) i * 10);
                kill(i % 3 == 0 ? child : parent->pid, SIGKILL);
                reply = client_receive(bob, cookie);
                if (sd_bus_message_is_method_error(reply, NULL))
                        g_test_message("%d: %s", i, sd_bus_message_get_error(reply)->message);
                if (sd_bus_message_is_method_error(reply, NULL))
                        g_assert_cmpstr(sd_bus_message_get_error(reply)->name, ==,
                                        PERFALLOC_ERROR_NO_SUCH_PROCESS);
                kill(child, SIGKILL);
                counter_do(bob, counter, "Close");
        }
        await(service_descriptors() <= descriptors);
}

static void test_a_counter_that_is_closed_in_the_middle(void) {
        g_autoptr(Client) alice = client_new("alice");
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        unsigned descriptors = service_descriptors();

        for (int i = 0; i < 100; i++) {
                g_autofree char *counter = unattached_open(alice);
                uint64_t cookie =
                        client_send(alice, counter, COUNTER, "AttachProcess", "ua{sv}",
                                    (uint32_t) parent->pid, 1, "descendants", "b", i % 2 == 0);
                g_autoptr(sd_bus_message) reply = NULL;

                g_usleep((gulong) i * 10);
                counter_do(alice, counter, "Close");
                reply = client_receive(alice, cookie);
                if (sd_bus_message_is_method_error(reply, NULL))
                        g_assert_cmpstr(sd_bus_message_get_error(reply)->name, ==,
                                        SD_BUS_ERROR_UNKNOWN_OBJECT);
                g_assert_false(client_has_answer(alice, cookie)); /* another one */
        }
        await(service_descriptors() <= descriptors);
        writer_write(parent); /* nobody keeps it stopped */
}

static void test_a_client_that_leaves_in_the_middle(void) {
        pid_t child;
        g_autoptr(Actor) parent = parent_new("alice", &child);
        unsigned descriptors = service_descriptors();

        for (int i = 0; i < 50; i++) {
                g_autoptr(Client) alice = client_new("alice");
                g_autofree char *counter = unattached_open(alice);

                (void) client_send(alice, counter, COUNTER, "AttachProcess", "ua{sv}",
                                   (uint32_t) parent->pid, 1, "descendants", "b", true);
                g_usleep((gulong) i * 20);
        }
        await(service_descriptors() <= descriptors);
        writer_write(parent);
}

/* The service stops one tree for several at a time: they are not in each other's way. */
static void test_several_attach_the_same_tree(void) {
        Client *clients[] = { client_new("alice"), client_new("bob"), client_new("root") };
        pid_t child;
        g_autoptr(Actor) parent = parent_new("bob", &child);

        for (int i = 0; i < 30; i++) {
                char *counters[6];
                uint64_t cookies[6];

                for (size_t k = 0; k < 6; k++) {
                        counters[k] = counter_open(clients[k % 3], "page-faults:u", UNATTACHED);
                        cookies[k] = client_send(clients[k % 3], counters[k], COUNTER,
                                                 "AttachProcess", "ua{sv}", (uint32_t) parent->pid,
                                                 1, "descendants", "b", true);
                }
                for (size_t k = 0; k < 6; k++) {
                        g_autoptr(sd_bus_message) reply =
                                client_receive(clients[k % 3], cookies[k]);

                        if (sd_bus_message_is_method_error(reply, NULL))
                                g_error("%s", sd_bus_message_get_error(reply)->message);
                        counter_do(clients[k % 3], counters[k], "Close");
                        g_free(counters[k]);
                }
        }
        for (size_t k = 0; k < G_N_ELEMENTS(clients); k++)
                client_free(g_steal_pointer(&clients[k]));
}

static void test_descriptors_are_charged(void) {
        g_autoptr(Client) alice = NULL;
        const int n = 20;
        g_autoptr(Actor) threads = actor_new("alice", play_threads, &n);
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = NULL;

        g_assert_cmpint(actor_hear(threads), ==, 'r');
        rig_configure("[Limits]\nDescriptorsPerUser=10\n");
        alice = client_new("alice");
        counter = unattached_open(alice);
        attach_refused(alice, SD_BUS_ERROR_LIMITS_EXCEEDED, counter, (uint32_t) threads->pid);
        g_assert_nonnull(strstr(alice->refusal, "DescriptorsPerUser"));
        assert_targets(alice, counter, 0);
        /* what was refused is not charged, and what is detached is given back */
        for (int i = 0; i < 20; i++) {
                attach(alice, counter, writer->pid);
                detach(alice, counter, writer->pid);
        }
        rig_configure("");
}

/* ---- descriptors ---- */

static void test_more_descriptors_than_a_message_carries(void) {
        g_autoptr(Client) alice = client_new("alice");
        const int n = 16;
        g_autoptr(Actor) threads = actor_new("alice", play_threads, &n);
        g_autofree char *counter = unattached_open(alice);

        g_assert_cmpint(actor_hear(threads), ==, 'r');
        attach(alice, counter, threads->pid);
        client_refused(alice, SD_BUS_ERROR_LIMITS_EXCEEDED, counter, COUNTER, "GetFds", NULL);
        g_assert_nonnull(strstr(alice->refusal, "17 descriptors"));
        /* nothing was handed out */
        detach(alice, counter, threads->pid);
        attach(alice, counter, threads->pid);
}

static void test_a_monitor_keeps_its_descriptors(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *counter = monitor_open(root, 0, 0);

        client_refused(root, PERFALLOC_ERROR_NOT_PERMITTED, counter, COUNTER, "GetFds", NULL);
}

/* A monitor whose events are closed while it yields finds its processes again. */
static void test_a_monitor_of_processes_yields(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) one = writer_new("alice"), two = writer_new("alice");
        g_autofree char *event = watched_event(0), *hold = NULL;
        g_autofree char *counter = counter_open(alice, event, "a{sv}", 3, "attach", "b", false,
                                                "start", "b", false, "role", "s", "monitor");
        int lease;

        attach(alice, counter, one->pid);
        counter_do(alice, counter, "Start");
        writer_write(one);
        hold = hold_take(alice, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(alice, hold));
        counter_do(alice, counter, "Stop");
        attach(alice, counter, two->pid); /* opened when it is its turn */
        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, counter, COUNTER, "AttachProcess",
                       "ua{sv}", (uint32_t) getpid(), 1, "descendants", "b", true);
        counter_do(alice, counter, "Start");
        writer_write(one);
        writer_write(two);
        close(lease);
        await(counter_is(alice, counter, "counting"));
        /* each is looked at again before it counts: until that has come about */
        await((writer_write(one), counter_value(alice, counter) > 100));
        await((writer_write(two),
               counter_value(alice, counter) % 200 == 0 || counter_value(alice, counter) > 300));
        assert_targets(alice, counter, 2, one->pid, two->pid);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/attach/counts-what-is-attached", test_counts_what_is_attached);
        g_test_add_func("/attach/without-a-target-counts-nothing",
                        test_without_a_target_counts_nothing);
        g_test_add_func("/attach/several-targets-add-up", test_several_targets_add_up);
        g_test_add_func("/attach/detached-keeps-its-value", test_detached_keeps_its_value);
        g_test_add_func("/attach/rows-add-up-after-a-detach", test_rows_add_up_after_a_detach);
        g_test_add_func("/attach/ended-target-stays-in-the-sum",
                        test_ended_target_stays_in_the_sum);
        g_test_add_func("/attach/a-group-attaches-as-one", test_a_group_attaches_as_one);
        g_test_add_func("/attach/threads-all-count", test_threads_all_count);

        g_test_add_func("/attach/error/running", test_running);
        g_test_add_func("/attach/error/already-attached", test_already_attached);
        g_test_add_func("/attach/error/wrong-scope", test_wrong_scope);
        g_test_add_func("/attach/error/invalid-process", test_invalid_process);
        g_test_add_func("/attach/error/no-such-process", test_no_such_process);
        g_test_add_func("/attach/error/not-attached", test_not_attached);
        g_test_add_func("/attach/error/counters-are-taken", test_counters_are_taken);
        g_test_add_func("/attach/error/traced", test_traced);
        g_test_add_func("/attach/error/handed-out", test_handed_out);
        g_test_add_func("/attach/error/not-owner", test_not_owner);
        g_test_add_func("/attach/error/bad-options", test_bad_options);
        g_test_add_func("/attach/a-pidfd-outlasts-its-number", test_a_pidfd_outlasts_its_number);

        g_test_add_func("/attach/tree/living-descendants-count", test_living_descendants_count);
        g_test_add_func("/attach/tree/living-descendants-count-at-opening",
                        test_living_descendants_count_at_opening);
        g_test_add_func("/attach/tree/by-default-as-at-opening",
                        test_descendants_by_default_as_at_opening);
        g_test_add_func("/attach/tree/a-storm-of-forks-is-counted-once",
                        test_a_storm_of_forks_is_counted_once);
        g_test_add_func("/attach/tree/a-storm-of-threads-is-counted-once",
                        test_a_storm_of_threads_is_counted_once);

        g_test_add_func("/attach/middle/target-dies", test_a_target_that_dies_in_the_middle);
        g_test_add_func("/attach/middle/counter-is-closed",
                        test_a_counter_that_is_closed_in_the_middle);
        g_test_add_func("/attach/middle/client-leaves", test_a_client_that_leaves_in_the_middle);
        g_test_add_func("/attach/several-attach-the-same-tree", test_several_attach_the_same_tree);
        g_test_add_func("/attach/descriptors-are-charged", test_descriptors_are_charged);

        g_test_add_func("/fds/more-than-a-message-carries",
                        test_more_descriptors_than_a_message_carries);
        g_test_add_func("/fds/a-monitor-keeps-its-own", test_a_monitor_keeps_its_descriptors);
        g_test_add_func("/attach/a-monitor-of-processes-yields",
                        test_a_monitor_of_processes_yields);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* AttachProcess and DetachProcess: every rule, and sums that are exact. */

#include "attach-util.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

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
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(100));
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
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(300));
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
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(300));
        detach(alice, counter, two->pid);
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(300));

        /* and may be attached anew */
        counter_do(alice, counter, "Stop");
        attach(alice, counter, one->pid);
        counter_do(alice, counter, "Start");
        writer_write(one);
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(400));
}

/* False: the counter is closed. */
static bool call_is_answered(Client *c, const char *counter, uint64_t cookie) {
        g_autoptr(sd_bus_message) reply = client_receive(c, cookie);
        const sd_bus_error *error = sd_bus_message_get_error(reply);

        if (error)
                g_assert_cmpstr(error->name, ==, SD_BUS_ERROR_UNKNOWN_OBJECT);
        return !error;
}

static bool attach_and_detach(Client *c, const char *counter, pid_t pid) {
        return call_is_answered(c, counter,
                                client_send(c, counter, COUNTER, "AttachProcess", "ua{sv}",
                                            (uint32_t) pid, 0)) &&
               call_is_answered(
                       c, counter,
                       client_send(c, counter, COUNTER, "DetachProcess", "u", (uint32_t) pid));
}

static void open_many(Client *c, unsigned n) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "OpenCounters");

        bus_check(sd_bus_message_open_container(m, 'a', "s"), "OpenCounters");
        while (n-- > 0)
                bus_check(sd_bus_message_append(m, "s", "page-faults:u"), "OpenCounters");
        bus_check(sd_bus_message_close_container(m), "OpenCounters");
        bus_check(sd_bus_message_append(m, "a{sv}", 0), "OpenCounters");
        sd_bus_message_unref(client_call_message(c, m));
}

/* Its counters end in slices, this one as the last, and what ends before it is opened includes it.
 */
static void test_its_opener_leaves_meanwhile(void) {
        g_autoptr(Client) opener = client_new("root"), other = client_new("root");
        g_autoptr(Actor) writer = writer_new("root");
        g_autofree char *counter = unattached_open(opener);

        for (int i = 0; i < 3; i++)
                open_many(opener, 1000);
        g_assert_true(attach_and_detach(other, counter, writer->pid));
        g_clear_pointer(&opener, client_free);
        while (attach_and_detach(other, counter, writer->pid))
                ;
        await(client_count(other, "counter") == 0);
}

/* Root in a PID namespace: its number of the child, which the service knows by another one. */
static void attach_from_below(void) {
        g_autoptr(Client) me = client_new("root");
        g_autofree char *counter = counter_open(me, "page-faults:u", "a{sv}", 2, "attach", "b",
                                                false, "start", "b", false);
        pid_t child = fork();
        _cleanup_close_ int pidfd = -1;

        if (child == 0)
                _exit(pause());
        pidfd = (int) syscall(SYS_pidfd_open, child, 0);
        sd_bus_message_unref(client_call(me, counter, COUNTER, "AttachProcess", "ua{sv}", 0, 1,
                                         "pidfd", "h", pidfd));
        client_refused(me, PERFALLOC_ERROR_NOT_ATTACHED, counter, COUNTER, "DetachProcess", "u",
                       (uint32_t) child + 1000);
        detach(me, counter, child);
        assert_targets(me, counter, 0);
        client_refused(me, PERFALLOC_ERROR_NOT_ATTACHED, counter, COUNTER, "DetachProcess", "u",
                       (uint32_t) child);
        (void) kill(child, SIGKILL);
}

static int play_below(int fd, const void *data) {
        pid_t child;
        int status;

        if (unshare(CLONE_NEWPID) < 0)
                return 1;
        child = fork();
        if (child == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                attach_from_below();
                _exit(0);
        }
        return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

static void test_detached_by_the_callers_number(void) {
        g_autoptr(Actor) below = actor_new("root", play_below, NULL);

        g_assert_cmpint(actor_join(below), ==, 0);
}

/* The first of a new PID namespace, which is its number 1. */
static pid_t below_fork(void) {
        pid_t pid = unshare(CLONE_NEWPID) < 0 ? -1 : fork();

        if (pid == 0)
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        return pid;
}

static pid_t child_of(pid_t pid) {
        g_autofree char *file = g_strdup_printf("/proc/%d/task/%d/children", (int) pid, (int) pid);
        g_autofree char *text = NULL;

        return g_file_get_contents(file, &text, NULL, NULL) ? (pid_t) atoi(text) : -1;
}

/* Tells, by our number, which process is number 2 of a new PID namespace. entered: it was put there
 * from outside. */
static int play_container(int fd, const void *entered) {
        pid_t first = below_fork(), second = 0;

        if (first == 0) {
                if (!entered && fork() == 0)
                        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(pause());
        }
        if (first > 0 && entered)
                second = fork();
        if (second == 0 && entered) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(pause());
        }
        while (second == 0)
                second = child_of(first);
        if (second < 0 || write(fd, &second, sizeof(second)) != sizeof(second))
                return 1;
        (void) act_hear(fd);
        return 0;
}

static Actor *container_new(const void *entered, pid_t *ret_second) {
        Actor *a = actor_new("root", play_container, entered);

        g_assert_cmpint(read(a->fd, ret_second, sizeof(*ret_second)), ==, sizeof(*ret_second));
        g_assert_cmpint(*ret_second, >, 0);
        return a;
}

typedef struct Refused {
        const char *counter, *error;
} Refused;

/* From a PID namespace beside the containers'. */
static int play_beside(int fd, const void *data) {
        const Refused *refused = data;
        pid_t child = below_fork();
        int status;

        if (child == 0) {
                g_autoptr(Client) me = client_new("root");

                client_refused(me, refused->error, refused->counter, COUNTER, "DetachProcess", "u",
                               2);
                _exit(0);
        }
        return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

static void refused_beside(const char *error, const char *counter) {
        const Refused refused = { counter, error };
        g_autoptr(Actor) beside = actor_new("root", play_beside, &refused);

        g_assert_cmpint(actor_join(beside), ==, 0);
}

static void test_detached_by_no_number_of_another_container(void) {
        g_autoptr(Client) root = client_new("root");
        pid_t second;
        g_autoptr(Actor) container = container_new(NULL, &second);
        g_autofree char *counter = counter_open(root, "page-faults:u", UNATTACHED);

        attach(root, counter, second);
        refused_beside(PERFALLOC_ERROR_NOT_ATTACHED, counter);
        assert_targets(root, counter, 1, second);
        actor_tell(container, 'e');
}

static void test_detached_by_no_number_of_several(void) {
        g_autoptr(Client) root = client_new("root");
        pid_t one, two;
        g_autoptr(Actor) first = container_new("entered", &one);
        g_autoptr(Actor) second = container_new("entered", &two);
        g_autofree char *counter = counter_open(root, "page-faults:u", UNATTACHED);

        attach(root, counter, one);
        attach(root, counter, two);
        refused_beside(PERFALLOC_ERROR_INVALID_PROCESS, counter);
        assert_targets(root, counter, 2, one, two);
        actor_tell(first, 'e');
        actor_tell(second, 'e');
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
        g_assert_cmpuint(sum, ==, hits(200));
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
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(100));
        assert_targets(alice, counter, 0);

        counter_do(alice, counter, "Stop");
        attach(alice, counter, two->pid);
        counter_do(alice, counter, "Start");
        writer_write(two);
        g_assert_cmpuint(counter_value(alice, counter), ==, hits(200));
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
        g_assert_cmpuint(counter_value(alice, leader), ==, hits(100));
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
        /* refused calls are not charged, and detaching releases the charge */
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

/* Without processes there are none, and processes can still be attached. */
static void test_no_descriptors_are_nothing_handed_out(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(Actor) writer = writer_new("alice");
        g_autofree char *counter = unattached_open(alice);
        g_autoptr(sd_bus_message) fds = client_call(alice, counter, COUNTER, "GetFds", NULL);

        g_assert_cmpint(sd_bus_message_enter_container(fds, 'a', "h"), >, 0);
        g_assert_cmpint(sd_bus_message_at_end(fds, false), >, 0);
        attach(alice, counter, writer->pid);
}

static void test_a_monitor_keeps_its_descriptors(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *counter = monitor_open(root, 0, 0);

        client_refused(root, PERFALLOC_ERROR_NOT_PERMITTED, counter, COUNTER, "GetFds", NULL);
}

/* A monitor counter whose events are closed while it yields finds its processes again. */
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
        attach(alice, counter, two->pid); /* opened only after the yield */
        client_refused(alice, SD_BUS_ERROR_INVALID_ARGS, counter, COUNTER, "AttachProcess",
                       "ua{sv}", (uint32_t) getpid(), 1, "descendants", "b", true);
        counter_do(alice, counter, "Start");
        writer_write(one);
        writer_write(two);
        close(lease);
        await(counter_is(alice, counter, "counting"));
        /* each process is inspected again before it counts: wait for that */
        await((writer_write(one), counter_value(alice, counter) > 100 || hits(1) == 0));
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
        g_test_add_func("/attach/its-opener-leaves-meanwhile", test_its_opener_leaves_meanwhile);
        g_test_add_func("/attach/detached-by-the-callers-number",
                        test_detached_by_the_callers_number);
        g_test_add_func("/attach/detached-by-no-number-of-another-container",
                        test_detached_by_no_number_of_another_container);
        g_test_add_func("/attach/detached-by-no-number-of-several",
                        test_detached_by_no_number_of_several);
        g_test_add_func("/attach/rows-add-up-after-a-detach", test_rows_add_up_after_a_detach);
        g_test_add_func("/attach/ended-target-stays-in-the-sum",
                        test_ended_target_stays_in_the_sum);
        g_test_add_func("/attach/a-group-attaches-as-one", test_a_group_attaches_as_one);
        g_test_add_func("/attach/threads-all-count", test_threads_all_count);
        g_test_add_func("/attach/descriptors-are-charged", test_descriptors_are_charged);
        g_test_add_func("/fds/more-than-a-message-carries",
                        test_more_descriptors_than_a_message_carries);
        g_test_add_func("/fds/none-are-nothing-handed-out",
                        test_no_descriptors_are_nothing_handed_out);
        g_test_add_func("/fds/a-monitor-keeps-its-own", test_a_monitor_keeps_its_descriptors);
        g_test_add_func("/attach/a-monitor-of-processes-yields",
                        test_a_monitor_of_processes_yields);
        return g_test_run();
}

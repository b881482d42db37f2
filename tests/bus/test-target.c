/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counters of processes: which process, which of its threads and children, and whose it may be. */

#include "bus-util.h"

#include <grp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { WRITES = 10, THREADS = 3 };

/* ---- targets: processes that write where breakpoints watch, when they are told to ---- */

static void *thread_write(void *go) {
        if (go)
                (void) pthread_barrier_wait(go);
        watched_write(0, WRITES);
        return NULL;
}

static void write_in_thread(void) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, thread_write, NULL) != 0 ||
            pthread_join(thread, NULL) != 0)
                _exit(1);
}

static void write_in_child(void) {
        pid_t pid = fork();

        if (pid == 0) {
                watched_write(0, WRITES);
                _exit(0);
        }
        (void) waitpid(pid, NULL, 0);
}

/* 'w': write, 't': in a new thread, 'c': in a child; answers 'd' each time. Ends when the test
 * hangs up. */
static int obey(int fd) {
        char what;

        act_say(fd, 'r');
        while ((what = act_hear(fd))) {
                if (what == 'w')
                        watched_write(0, WRITES);
                else if (what == 't')
                        write_in_thread();
                else
                        write_in_child();
                act_say(fd, 'd');
        }
        return 0;
}

static int play_target(int fd, const void *data) {
        return obey(fd);
}

static int play_undumpable(int fd, const void *data) {
        (void) prctl(PR_SET_DUMPABLE, 0);
        return obey(fd);
}

/* As a setuid program is, started by dave. */
static int play_setuid(int fd, const void *data) {
        uid_t dave = user_id("dave");

        if (setgroups(0, NULL) < 0 || setresgid(dave, dave, dave) < 0 || setresuid(dave, 0, 0) < 0)
                return 1;
        (void) prctl(PR_SET_DUMPABLE, 1);
        return obey(fd);
}

/* Threads that are there already, and write together when told to. */
static int play_threads(int fd, const void *data) {
        pthread_barrier_t go;
        pthread_t threads[THREADS];

        (void) pthread_barrier_init(&go, NULL, THREADS + 1);
        for (size_t i = 0; i < THREADS; i++)
                if (pthread_create(&threads[i], NULL, thread_write, &go) != 0)
                        return 1;
        act_say(fd, 'r');
        if (act_hear(fd) != 'w')
                return 1;
        (void) pthread_barrier_wait(&go);
        for (size_t i = 0; i < THREADS; i++)
                (void) pthread_join(threads[i], NULL);
        act_say(fd, 'd');
        return obey(fd);
}

static Actor *target_new(const char *user, int (*play)(int fd, const void *data)) {
        Actor *a = actor_new(user, play, NULL);

        g_assert_cmpint(actor_hear(a), ==, 'r');
        return a;
}

static void target_do(Actor *a, char what) {
        actor_tell(a, what);
        g_assert_cmpint(actor_hear(a), ==, 'd');
}

static char *open_on(Client *c, const Actor *a, bool descendants) {
        g_autofree char *event = watched_event(0);

        return counter_open_on(c, event, a->pid, descendants);
}

static void refused_on(Client *c, const Actor *a, const char *error) {
        g_autofree char *event = watched_event(0);

        client_refused(c, error, MANAGER, "OpenCounters", "asa{sv}", 1, event, 1, "pid", "u",
                       (uint32_t) a->pid);
}

/* ---- the promises ---- */

static int play_own_client(int fd, const void *data) {
        g_autoptr(Client) me = client_new("dave");
        g_autofree char *event = watched_event(0), *path = NULL;

        path = counter_open(me, event, "a{sv}", 0);
        watched_write(0, WRITES);
        return counter_value(me, path) == hits(WRITES) ? 0 : 1;
}

static void test_caller(void) {
        g_autoptr(Actor) dave = actor_new("dave", play_own_client, NULL);

        g_assert_cmpint(actor_join(dave), ==, 0);
}

static void test_pid(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave", play_target);
        g_autofree char *path = open_on(dave, target, false);
        g_auto(Measured) m = {};

        watched_write(0, 1); /* not by the target */
        target_do(target, 'w');
        m = counter_read(dave, path);
        g_assert_cmpuint(m.value, ==, hits(WRITES));
        g_assert_cmpstr(m.quality, ==, "exact");
}

static void test_targets(void) {
        g_autoptr(Client) dave = client_new("dave"), alice = client_new("alice");
        g_autoptr(Actor) target = target_new("dave", play_target);
        g_autofree char *path = open_on(dave, target, false);
        g_autoptr(sd_bus_message) daves = NULL, alices = NULL;
        uint32_t pid;

        daves = client_call(dave, path, "org.freedesktop.DBus.Properties", "Get", "ss", COUNTER,
                            "Targets");
        g_assert_cmpint(sd_bus_message_read(daves, "v", "au", 1, &pid), >, 0);
        g_assert_cmpuint(pid, ==, target->pid);
        alices = client_call(alice, path, "org.freedesktop.DBus.Properties", "Get", "ss", COUNTER,
                             "Targets");
        g_assert_cmpint(sd_bus_message_enter_container(alices, 'v', "au"), >, 0);
        g_assert_cmpint(sd_bus_message_enter_container(alices, 'a', "u"), >, 0);
        g_assert_cmpint(sd_bus_message_at_end(alices, false), >, 0);
}

static void test_pidfd(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave", play_target);
        g_autofree char *event = watched_event(0), *path = NULL;
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, target->pid, 0);

        path = counter_open(dave, event, "a{sv}", 2, "pidfd", "h", pidfd, "procfd", "h",
                            client_proof(dave, target->pid));
        target_do(target, 'w');
        g_assert_cmpuint(counter_value(dave, path), ==, hits(WRITES));
        g_assert_cmpint(actor_join(target), ==, 0);
        client_refused(dave, PERFALLOC_ERROR_NO_SUCH_PROCESS, MANAGER, "OpenCounters", "asa{sv}", 1,
                       event, 1, "pidfd", "h", pidfd);
}

static void test_procfd(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave", play_target);
        g_autofree char *event = watched_event(0), *path = NULL;
        int procfd = client_proof(dave, target->pid);

        path = counter_open(dave, event, "a{sv}", 1, "procfd", "h", procfd);
        target_do(target, 'w');
        g_assert_cmpuint(counter_value(dave, path), ==, hits(WRITES));
        g_assert_cmpint(actor_join(target), ==, 0);
        client_refused(dave, PERFALLOC_ERROR_NO_SUCH_PROCESS, MANAGER, "OpenCounters", "asa{sv}", 1,
                       event, 1, "procfd", "h", procfd);
}

static void test_pidfd_of_something_else(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autofree char *event = watched_event(0);

        client_refused(dave, PERFALLOC_ERROR_BAD_DESCRIPTOR, MANAGER, "OpenCounters", "asa{sv}", 1,
                       event, 1, "pidfd", "h", 0);
}

static void test_threads(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave", play_threads);
        g_autofree char *path = open_on(dave, target, false);
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t value;
        uint32_t pid, tid;
        int32_t cpu;
        unsigned n = 0;

        target_do(target, 'w');
        g_assert_cmpuint(counter_value(dave, path), ==, hits(THREADS * WRITES));
        reply = client_call(dave, path, COUNTER, "ReadEach", NULL);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "(iuttts)"), >, 0);
        while (sd_bus_message_read(reply, "(iuttts)", &cpu, &tid, &value, NULL, NULL, NULL) > 0) {
                g_assert_cmpint(cpu, ==, -1);
                g_assert_cmpuint(value, ==, hits((pid_t) tid == target->pid ? 0 : WRITES));
                n++;
        }
        g_assert_cmpuint(n, ==, THREADS + 1);
        sd_bus_message_unref(g_steal_pointer(&reply));
        reply = client_call(dave, path, COUNTER, "ReadParts", NULL);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "(iuustttts)"), >, 0);
        while (sd_bus_message_read(reply, "(iuustttts)", NULL, &pid, &tid, NULL, &value, NULL, NULL,
                                   NULL, NULL) > 0) {
                g_assert_cmpint((pid_t) pid, ==, target->pid);
                g_assert_cmpuint(value, ==, hits(tid == pid ? 0 : WRITES));
                n--;
        }
        g_assert_cmpuint(n, ==, 0);
}

static void test_later_threads(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave", play_target);
        g_autofree char *path = open_on(dave, target, false);

        target_do(target, 't');
        target_do(target, 't');
        g_assert_cmpuint(counter_value(dave, path), ==, hits(2 * WRITES));
}

static void test_descendants(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave", play_target);
        g_autofree char *with = open_on(dave, target, true),
                        *without = open_on(dave, target, false);

        target_do(target, 'c');
        g_assert_cmpuint(counter_value(dave, with), ==, hits(WRITES));
        g_assert_cmpuint(counter_value(dave, without), ==, 0);
}

static void test_after_the_end(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave", play_target);
        g_autofree char *path = open_on(dave, target, false);

        target_do(target, 'w');
        g_assert_cmpint(actor_join(target), ==, 0);
        g_assert_cmpuint(counter_value(dave, path), ==, hits(WRITES));
}

static void test_other_user(void) {
        g_autoptr(Client) dave = client_new("dave"), alice = client_new("alice"),
                          root = client_new("root");
        g_autoptr(Actor) target = target_new("bob", play_target);
        g_autofree char *alices = NULL, *roots = NULL;

        refused_on(dave, target, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED);
        g_assert_nonnull(strstr(dave->refusal, "org.perfalloc1.count-other"));
        /* alice has count-other */
        alices = open_on(alice, target, false);
        roots = open_on(root, target, false);
        target_do(target, 'w');
        g_assert_cmpuint(counter_value(alice, alices), ==, hits(WRITES));
        g_assert_cmpuint(counter_value(root, roots), ==, hits(WRITES));
}

static void test_undumpable(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave", play_undumpable);

        refused_on(dave, target, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED);
        g_assert_nonnull(strstr(dave->refusal, "org.perfalloc1.count-other"));
}

static void test_setuid(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("root", play_setuid);

        refused_on(dave, target, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED);
        g_assert_nonnull(strstr(dave->refusal, "org.perfalloc1.count-other"));
}

/* The bus says dave, but the process behind the connection is root's. */
static void test_caller_is_checked_like_any_other(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autofree char *event = watched_event(0);

        client_refused(dave, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                       "OpenCounters", "asa{sv}", 1, event, 0);
        g_assert_nonnull(strstr(dave->refusal, "org.perfalloc1.count-other"));
}

static void test_kernel(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave", play_target);
        g_autofree char *path = NULL;

        client_refused(dave, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                       "OpenCounters", "asa{sv}", 1, "page-faults", 2, "pid", "u",
                       (uint32_t) target->pid, "procfd", "h", client_proof(dave, target->pid));
        g_assert_nonnull(strstr(dave->refusal, "org.perfalloc1.count-kernel"));
        path = counter_open(dave, "page-faults:u", "a{sv}", 2, "pid", "u", (uint32_t) target->pid,
                            "procfd", "h", client_proof(dave, target->pid));
}

static void test_no_process(void) {
        g_autoptr(Client) dave = client_new("dave");
        g_autoptr(Actor) target = target_new("dave", play_target);
        g_autofree char *event = watched_event(0);
        uint32_t pid = (uint32_t) target->pid;

        g_assert_cmpint(actor_join(target), ==, 0);
        client_refused(dave, PERFALLOC_ERROR_NO_SUCH_PROCESS, MANAGER, "OpenCounters", "asa{sv}", 1,
                       event, 1, "pid", "u", pid);
        client_refused(dave, PERFALLOC_ERROR_INVALID_PROCESS, MANAGER, "OpenCounters", "asa{sv}", 1,
                       event, 1, "pid", "u", 0);
        client_refused(dave, PERFALLOC_ERROR_INVALID_PROCESS, MANAGER, "OpenCounters", "asa{sv}", 1,
                       event, 1, "pid", "u", UINT32_MAX);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/target/is-the-caller-when-none-is-named", test_caller);
        g_test_add_func("/target/can-be-named-by-pid", test_pid);
        g_test_add_func("/target/can-be-named-by-pidfd", test_pidfd);
        g_test_add_func("/target/can-be-named-by-procfd", test_procfd);
        g_test_add_func("/target/a-descriptor-that-is-no-pidfd-is-refused",
                        test_pidfd_of_something_else);
        g_test_add_func("/target/pids-are-for-the-owner", test_targets);
        g_test_add_func("/target/all-its-threads-are-counted", test_threads);
        g_test_add_func("/target/threads-born-later-are-counted", test_later_threads);
        g_test_add_func("/target/children-born-later-are-counted-on-demand", test_descendants);
        g_test_add_func("/target/what-was-counted-outlives-it", test_after_the_end);
        g_test_add_func("/target/of-another-user-needs-count-other", test_other_user);
        g_test_add_func("/target/not-dumpable-needs-count-other", test_undumpable);
        g_test_add_func("/target/setuid-needs-count-other", test_setuid);
        g_test_add_func("/target/the-caller-is-checked-like-any-other",
                        test_caller_is_checked_like_any_other);
        g_test_add_func("/target/counting-the-kernel-needs-count-kernel", test_kernel);
        g_test_add_func("/target/must-exist", test_no_process);
        return g_test_run();
}

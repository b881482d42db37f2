/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The trace rule: which processes a caller may count without polkit. bob may count own processes
 * only; alice has count-other. fs.suid_dumpable belongs to the machine and is left alone: see
 * src/service/auth/test-trace-rule.c. */

#include "attach-util.h"
#include "event-util.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SPIN "/run/rig/home/spin" /* a copy of this program */

/* ---- targets ---- */

static int play_ordinary(int fd, const void *data) {
        act_say(fd, 'r');
        (void) act_hear(fd);
        return 0;
}

static int play_not_dumpable(int fd, const void *data) {
        (void) prctl(PR_SET_DUMPABLE, 0);
        return play_ordinary(fd, data);
}

static int play_setgid(int fd, const void *data) {
        /* still as root: one of the three gids differs */
        if (setresgid(user_id("bob"), user_id("bob"), 0) < 0 || setuid(user_id("bob")) < 0)
                return 1;
        (void) prctl(PR_SET_DUMPABLE, 1);
        return play_ordinary(fd, data);
}

static int play_capable(int fd, const void *data) {
        cap_t caps = cap_from_text("cap_net_raw=ep");
        int r;

        (void) prctl(PR_SET_KEEPCAPS, 1);
        if (setgroups(0, NULL) < 0 || setgid(user_id("bob")) < 0 || setuid(user_id("bob")) < 0)
                return 1;
        r = cap_set_proc(caps);
        (void) cap_free(caps);
        (void) prctl(PR_SET_DUMPABLE, 1);
        return r < 0 ? 1 : play_ordinary(fd, data);
}

/* data: it has dropped its capabilities there. */
static int play_user_namespace(int fd, const void *data) {
        cap_t none = cap_init();

        if (unshare(CLONE_NEWUSER) < 0)
                act_say(fd, 'x');
        if (data && cap_set_proc(none) < 0)
                return 1;
        (void) cap_free(none);
        (void) prctl(PR_SET_DUMPABLE, 1);
        return play_ordinary(fd, data);
}

/* The target is the child, which is in the namespace: its pid goes to the test. */
static int play_pid_namespace(int fd, const void *data) {
        int told[2];
        pid_t child;
        char what;

        if (unshare(CLONE_NEWPID) < 0 || pipe(told) < 0)
                return 1;
        child = fork();
        if (child == 0) {
                close(told[1]);
                if (setgroups(0, NULL) < 0 || setgid(user_id("bob")) < 0 ||
                    setuid(user_id("bob")) < 0)
                        _exit(1);
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) prctl(PR_SET_DUMPABLE, 1);
                if (read(told[0], &what, 1) != 0) /* its number goes first */
                        _exit(1);
                _exit(play_ordinary(fd, data));
        }
        if (write(fd, &child, sizeof(child)) != sizeof(child))
                return 1;
        close(told[1]);
        (void) waitpid(child, NULL, 0);
        return 0;
}

/* Its child becomes what it is told to. */
static int play_parent_of_hidden(int fd, const void *data) {
        pid_t child = fork();

        if (child == 0) {
                (void) prctl(PR_SET_DUMPABLE, 0);
                _exit(play_ordinary(fd, data));
        }
        (void) waitpid(child, NULL, 0);
        return 0;
}

/* Executes the copy, which may have another owner and mode, when told to. */
static int play_exec(int fd, const void *data) {
        act_say(fd, 'r');
        (void) act_hear(fd);
        (void) fcntl(fd, F_SETFD, 0);
        (void) execl(SPIN, SPIN, "--spin", NULL);
        return 1;
}

/* The copy. */
static _Noreturn void spin(void) {
        act_say(3, 's');
        for (;;)
                (void) getppid();
}

static void spin_install(const char *user, mode_t mode) {
        g_autofree char *self = NULL;
        gsize size;

        g_assert_true(g_file_get_contents("/proc/self/exe", &self, &size, NULL));
        g_assert_true(g_file_set_contents(SPIN, self, (gssize) size, NULL));
        g_assert_cmpint(chown(SPIN, user_id(user), user_id(user)), ==, 0);
        g_assert_cmpint(chmod(SPIN, mode), ==, 0);
}

/* ---- counting it ---- */

static void assert_denied(Client *c, pid_t pid) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_PAGE_FAULTS);
        const Raw raw = { .attr = &attr, .pid = pid, .cpu = -1 };
        g_autofree char *counter = counter_open(c, "page-faults:u", "a{sv}", 2, "attach", "b",
                                                false, "start", "b", false);

        client_refused(c, PERFALLOC_ERROR_NOT_PERMITTED, counter, COUNTER, "AttachProcess",
                       "ua{sv}", (uint32_t) pid, 0);
        g_assert_nonnull(strstr(c->refusal, "may not trace"));
        client_refused(c, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER, "OpenCounters",
                       "asa{sv}", 1, "page-faults:u", 1, "pid", "u", (uint32_t) pid);
        g_assert_nonnull(strstr(c->refusal, "may not trace"));
        g_assert_nonnull(strstr(c->refusal, "org.perfalloc1.count-other"));
        raw_refused(c, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "may not trace", raw,
                    "a{sv}", 0);
        g_assert_nonnull(strstr(c->refusal, "org.perfalloc1.count-other"));
        counter_do(c, counter, "Close");
}

static void assert_allowed(Client *c, pid_t pid) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_PAGE_FAULTS);
        g_autofree char *counter = counter_open(c, "page-faults:u", "a{sv}", 2, "attach", "b",
                                                false, "start", "b", false);
        g_autofree char *other = counter_open_on(c, "page-faults:u", pid, false);

        attach(c, counter, pid);
        close_fd(raw_open(c, (Raw){ .attr = &attr, .pid = pid, .cpu = -1 }, "a{sv}", 0));
        counter_do(c, counter, "Close");
        counter_do(c, other, "Close");
}

/* Not without count-other, but with it. */
static void assert_other(pid_t pid) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");

        assert_denied(bob, pid);
        assert_allowed(alice, pid);
}

static void test_ones_own(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autoptr(Actor) target = actor_new("bob", play_ordinary, NULL);

        g_assert_cmpint(actor_hear(target), ==, 'r');
        assert_allowed(bob, target->pid);
}

static void test_another_users(void) {
        g_autoptr(Actor) target = actor_new("dave", play_ordinary, NULL);

        g_assert_cmpint(actor_hear(target), ==, 'r');
        assert_other(target->pid);
        assert_other(1);
}

static void test_not_dumpable(void) {
        g_autoptr(Actor) target = actor_new("bob", play_not_dumpable, NULL);

        g_assert_cmpint(actor_hear(target), ==, 'r');
        assert_other(target->pid);
}

static void test_setuid_program(void) {
        g_autoptr(Actor) target = NULL;

        spin_install("root", 04755);
        target = actor_new("bob", play_exec, NULL);
        g_assert_cmpint(actor_hear(target), ==, 'r');
        actor_tell(target, 'g');
        g_assert_cmpint(actor_hear(target), ==, 's');
        assert_other(target->pid);
}

static void test_unreadable_program(void) {
        g_autoptr(Actor) target = NULL;

        spin_install("root", 0711); /* executable and not readable: not dumpable */
        target = actor_new("bob", play_exec, NULL);
        g_assert_cmpint(actor_hear(target), ==, 'r');
        actor_tell(target, 'g');
        g_assert_cmpint(actor_hear(target), ==, 's');
        assert_other(target->pid);
}

static void test_mixed_groups(void) {
        g_autoptr(Actor) target = actor_new("root", play_setgid, NULL);

        g_assert_cmpint(actor_hear(target), ==, 'r');
        assert_other(target->pid);
}

static void test_more_capabilities(void) {
        g_autoptr(Actor) target = actor_new("root", play_capable, NULL);

        g_assert_cmpint(actor_hear(target), ==, 'r');
        assert_other(target->pid);
}

static void test_another_user_namespace(void) {
        g_autoptr(Actor) target = actor_new("bob", play_user_namespace, NULL);

        if (actor_hear(target) == 'x')
                g_test_skip("this machine lets ordinary users have no user namespaces");
        else
                assert_other(target->pid);
}

/* Nothing readable about it tells that it is in a namespace. */
static void test_another_user_namespace_unseen(void) {
        g_autoptr(Actor) target = actor_new("bob", play_user_namespace, "powerless");
        g_autoptr(Client) root G_GNUC_UNUSED = client_new("root");
        unsigned descriptors = service_descriptors();

        if (actor_hear(target) == 'x') {
                g_test_skip("this machine lets ordinary users have no user namespaces");
                return;
        }
        assert_other(target->pid);
        await(service_descriptors() <= descriptors);
}

static void test_another_pid_namespace(void) {
        g_autoptr(Actor) target = actor_new("root", play_pid_namespace, NULL);
        pid_t child;

        g_assert_cmpint(read(target->fd, &child, sizeof(child)), ==, sizeof(child));
        g_assert_cmpint(actor_hear(target), ==, 'r');
        assert_other(child);
}

static void test_a_descendant(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autoptr(Actor) target = actor_new("bob", play_parent_of_hidden, NULL);
        g_autofree char *counter = counter_open(bob, "page-faults:u", "a{sv}", 2, "attach", "b",
                                                false, "start", "b", false);
        g_autofree char *all = NULL;

        g_assert_cmpint(actor_hear(target), ==, 'r');
        assert_allowed(bob, target->pid); /* alone */
        client_refused(bob, PERFALLOC_ERROR_NOT_PERMITTED, counter, COUNTER, "AttachProcess",
                       "ua{sv}", (uint32_t) target->pid, 2, "procfd", "h",
                       client_proof(bob, target->pid), "descendants", "b", true);
        g_assert_nonnull(strstr(bob->refusal, "dumpable"));
        client_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                       "OpenCounters", "asa{sv}", 1, "page-faults:u", 3, "pid", "u",
                       (uint32_t) target->pid, "procfd", "h", client_proof(bob, target->pid),
                       "descendants", "b", true);
        all = counter_open(alice, "page-faults:u", "a{sv}", 2, "pid", "u", (uint32_t) target->pid,
                           "descendants", "b", true);
}

/* ---- who changes later ---- */

/* User time of a process, in clock ticks. */
static unsigned long user_time(pid_t pid) {
        g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int) pid), *text = NULL;
        unsigned long utime = 0;

        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        g_assert_cmpint(sscanf(strrchr(text, ')'),
                               ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu", &utime),
                        ==, 1);
        return utime;
}

/* How much the counter grows while the process works for a while. */
static uint64_t counted_meanwhile(Client *c, const char *counter, pid_t pid) {
        unsigned long from = user_time(pid);
        uint64_t before = counter_value(c, counter);

        await(user_time(pid) > from + 3);
        return counter_value(c, counter) - before;
}

static void assert_left_alone(const char *owner, mode_t mode, bool later_counted) {
        g_autoptr(Client) bob = client_new("bob");
        g_autoptr(Actor) target = NULL;
        g_autofree char *running = NULL, *stopped = NULL;

        spin_install(owner, mode);
        target = actor_new("bob", play_exec, NULL);
        g_assert_cmpint(actor_hear(target), ==, 'r');
        running = counter_open(bob, "task-clock:u", "a{sv}", 2, "pid", "u", (uint32_t) target->pid,
                               "procfd", "h", client_proof(bob, target->pid));
        stopped = counter_open(bob, "task-clock:u", "a{sv}", 2, "attach", "b", false, "start", "b",
                               false);
        sd_bus_message_unref(client_call(bob, stopped, COUNTER, "AttachProcess", "ua{sv}",
                                         (uint32_t) target->pid, 1, "procfd", "h",
                                         client_proof(bob, target->pid)));
        actor_tell(target, 'g');
        g_assert_cmpint(actor_hear(target), ==, 's');
        counter_do(bob, stopped, "Start");
        if (later_counted) {
                g_assert_cmpuint(counted_meanwhile(bob, running, target->pid), >, 0);
                g_assert_cmpuint(counted_meanwhile(bob, stopped, target->pid), >, 0);
        } else {
                g_assert_cmpuint(counted_meanwhile(bob, running, target->pid), ==, 0);
                g_assert_cmpuint(counted_meanwhile(bob, stopped, target->pid), ==, 0);
        }
}

static void test_becomes_setuid(void) {
        assert_left_alone("root", 04755, false);
}

static void test_becomes_unreadable(void) {
        assert_left_alone("root", 0711, false);
}

static void test_becomes_another_ordinary_program(void) {
        assert_left_alone("root", 0755, true); /* otherwise the two checks before prove nothing */
}

/* A monitor counter's events are closed while it yields. Then the kernel has nothing to remove, and
 * the process is inspected again before it counts. */
static void test_becomes_setuid_while_yielded(void) {
        g_autoptr(Client) dave = NULL, root = client_new("root");
        g_autoptr(Actor) target = NULL;
        g_autofree char *event = watched_event(0), *counter = NULL, *hold = NULL;
        int lease;

        spin_install("root", 04755);
        rig("rules 05-dave.rules",
            "polkit.addRule(function(action, subject) {"
            "  if (subject.user == 'dave' && action.id == 'org.perfalloc1.monitor')"
            "    return polkit.Result.YES; });");
        dave = client_new("dave");
        target = actor_new("dave", play_exec, NULL);
        g_assert_cmpint(actor_hear(target), ==, 'r');
        counter =
                counter_open(dave, event, "a{sv}", 3, "pid", "u", (uint32_t) target->pid, "procfd",
                             "h", client_proof(dave, target->pid), "role", "s", "monitor");
        hold = hold_take(root, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(root, hold));
        actor_tell(target, 'g');
        g_assert_cmpint(actor_hear(target), ==, 's');
        close(lease);
        await(counter_is(dave, counter, "idle"));
        /* it is detached */
        for (bool attached = true; attached;) {
                g_autoptr(sd_bus_message) reply =
                        client_call(dave, counter, "org.freedesktop.DBus.Properties", "Get", "ss",
                                    COUNTER, "Targets");

                g_assert_cmpint(sd_bus_message_enter_container(reply, 'v', "au"), >, 0);
                g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "u"), >, 0);
                attached = sd_bus_message_skip(reply, "u") > 0;
        }
        rig("rules --remove 05-dave.rules", NULL);
}

static void test_dies_while_it_is_looked_at(void) {
        g_autoptr(Client) bob = client_new("bob");

        for (int i = 0; i < 100; i++) {
                g_autoptr(Actor) target = actor_new("bob", play_ordinary, NULL);
                g_autoptr(sd_bus_message) reply = NULL;
                uint64_t cookie;

                g_assert_cmpint(actor_hear(target), ==, 'r');
                cookie = client_send(bob, MANAGER, "OpenCounters", "asa{sv}", 1, "page-faults:u", 2,
                                     "pid", "u", (uint32_t) target->pid, "procfd", "h",
                                     client_proof(bob, target->pid));
                g_usleep((gulong) i * 10);
                (void) kill(target->pid, SIGKILL);
                reply = client_receive(bob, cookie);
                if (sd_bus_message_is_method_error(reply, NULL))
                        g_assert_cmpstr(sd_bus_message_get_error(reply)->name, ==,
                                        PERFALLOC_ERROR_NO_SUCH_PROCESS);
        }
}

int main(int argc, char *argv[]) {
        if (argc == 2 && strcmp(argv[1], "--spin") == 0)
                spin();
        g_test_init(&argc, &argv, NULL);
        /* as in a local session */
        rig("rules 05-bob.rules",
            "polkit.addRule(function(action, subject) {"
            "  if (subject.user == 'bob' && action.id == 'org.perfalloc1.sample-own')"
            "    return polkit.Result.YES; });");

        g_test_add_func("/trace/ones-own", test_ones_own);
        g_test_add_func("/trace/another-users", test_another_users);
        g_test_add_func("/trace/not-dumpable", test_not_dumpable);
        g_test_add_func("/trace/setuid-program", test_setuid_program);
        g_test_add_func("/trace/unreadable-program", test_unreadable_program);
        g_test_add_func("/trace/mixed-groups", test_mixed_groups);
        g_test_add_func("/trace/more-capabilities", test_more_capabilities);
        g_test_add_func("/trace/another-user-namespace", test_another_user_namespace);
        g_test_add_func("/trace/another-user-namespace-unseen", test_another_user_namespace_unseen);
        g_test_add_func("/trace/another-pid-namespace", test_another_pid_namespace);
        g_test_add_func("/trace/a-descendant", test_a_descendant);
        g_test_add_func("/trace/becomes/setuid", test_becomes_setuid);
        g_test_add_func("/trace/becomes/unreadable", test_becomes_unreadable);
        g_test_add_func("/trace/becomes/another-ordinary-program",
                        test_becomes_another_ordinary_program);
        g_test_add_func("/trace/becomes/setuid-while-yielded", test_becomes_setuid_while_yielded);
        g_test_add_func("/trace/dies-while-it-is-looked-at", test_dies_while_it_is_looked_at);
        return g_test_run();
}

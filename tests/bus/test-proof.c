/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Attacks of callers who may not trace a process of their own user: they live in a PID namespace or
 * in a Landlock domain, send descriptors that prove nothing, or speak for a process that has ended.
 * None of them needs more than a uid to succeed where a uid is all that is asked for. */

#include "attach-util.h"
#include "event-util.h"

#include <grp.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define DENIED SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED

static int play_victim(int fd, const void *data) {
        act_say(fd, 'r');
        (void) act_hear(fd);
        return 0;
}

static Actor *victim_new(void) {
        Actor *a = actor_new("bob", play_victim, NULL);

        g_assert_cmpint(actor_hear(a), ==, 'r');
        return a;
}

static PerfAttr stack_attr(void) {
        PerfAttr attr = software_attr(PERF_COUNT_SW_CPU_CLOCK);

        attr.sample_period = 1000000;
        attr.sample_type = PERF_SAMPLE_STACK_USER;
        attr.sample_stack_user = 4096;
        return attr;
}

/* OpenEvent with a copy of the stack, without the proof that raw_open() adds. */
static sd_bus_message *stack_message(Client *c, int pid, const char *option, int fd) {
        PerfAttr attr = stack_attr();
        sd_bus_message *m = client_message(c, MANAGER, "OpenEvent");

        g_assert_cmpint(sd_bus_message_append_array(m, 'y', &attr, sizeof(attr)), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "iit", pid, -1, UINT64_C(0)), >=, 0);
        if (option)
                g_assert_cmpint(sd_bus_message_append(m, "a{sv}", 1, option, "h", fd), >=, 0);
        else
                g_assert_cmpint(sd_bus_message_append(m, "a{sv}", 0), >=, 0);
        return m;
}

static void assert_names(Client *c, const char *words) {
        if (!strstr(c->refusal, words))
                g_error("the refusal does not name %s: %s", words, c->refusal);
}

/* All ways to count the process: by number, or by that option. */
static void refused_everywhere(Client *c, const char *error, const char *words, pid_t pid,
                               const char *option, int fd) {
        g_autoptr(sd_bus_message) m = stack_message(c, option ? 0 : pid, option, fd);
        g_autofree char *counter = unattached_open(c);
        const char *attach_error =
                strcmp(error, DENIED) == 0 ? PERFALLOC_ERROR_NOT_PERMITTED : error;

        client_refused_message(c, error, m);
        assert_names(c, words);
        if (option) {
                client_refused(c, error, MANAGER, "OpenCounters", "asa{sv}", 1, "page-faults:u", 1,
                               option, "h", fd);
                assert_names(c, words);
                client_refused(c, attach_error, counter, COUNTER, "AttachProcess", "ua{sv}", 0, 2,
                               option, "h", fd, "descendants", "b", true);
        } else {
                client_refused(c, error, MANAGER, "OpenCounters", "asa{sv}", 1, "page-faults:u", 1,
                               "pid", "u", (uint32_t) pid);
                assert_names(c, words);
                client_refused(c, attach_error, counter, COUNTER, "AttachProcess", "ua{sv}",
                               (uint32_t) pid, 1, "descendants", "b", true);
        }
        assert_names(c, words);
        counter_do(c, counter, "Close");
}

static int maps_open(pid_t pid, int flags) {
        g_autofree char *path = g_strdup_printf("/proc/%d/maps", (int) pid);

        return open(path, flags | O_CLOEXEC);
}

/* ---- sandboxes ---- */

static void become_bob(void) {
        uid_t bob = user_id("bob");

        if (initgroups("bob", bob) < 0 || setresgid(bob, bob, bob) < 0 ||
            setresuid(bob, bob, bob) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
                g_error("cannot be bob");
}

static void attack_from_pid_namespace(pid_t victim, int pidfd) {
        g_autoptr(Client) me = NULL;
        _cleanup_close_ int procfd = -1;

        become_bob();
        me = client_new("bob");
        g_assert_cmpint(kill(victim, 0), ==, -1);
        refused_everywhere(me, SD_BUS_ERROR_INVALID_ARGS, "pidfd", victim, NULL, -1);
        refused_everywhere(me, DENIED, "procfd", 0, "pidfd", pidfd);
        /* the host's /proc is still mounted here, as it may be in a container */
        procfd = maps_open(victim, O_RDONLY);
        g_assert_cmpint(procfd, >=, 0);
        refused_everywhere(me, DENIED, "namespace", 0, "procfd", procfd);
}

static int play_pid_namespace(int fd, const void *data) {
        pid_t victim = *(const pid_t *) data, child;
        int pidfd = (int) syscall(SYS_pidfd_open, victim, 0), status;

        if (unshare(CLONE_NEWPID) < 0)
                return 1;
        child = fork();
        if (child == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                attack_from_pid_namespace(victim, pidfd);
                _exit(0);
        }
        return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

static void test_pid_namespace(void) {
        g_autoptr(Actor) victim = victim_new();
        g_autoptr(Actor) attacker = actor_new("root", play_pid_namespace, &victim->pid);

        g_assert_cmpint(actor_join(attacker), ==, 0);
}

static bool write_file(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text);
}

/* As bob outside and inside, with all capabilities inside. The kernel opens no proof there; one
 * that was opened outside is none for who is inside. */
static int play_user_namespace(int fd, const void *data) {
        pid_t victim = *(const pid_t *) data;
        g_autofree char *map =
                g_strdup_printf("%u %u 1", (unsigned) user_id("bob"), (unsigned) user_id("bob"));
        g_autoptr(Client) me = NULL;
        _cleanup_close_ int procfd = maps_open(victim, O_RDONLY);

        g_assert_cmpint(procfd, >=, 0);
        if (unshare(CLONE_NEWUSER) < 0)
                return 77;
        if (!write_file("/proc/self/setgroups", "deny") || !write_file("/proc/self/uid_map", map) ||
            !write_file("/proc/self/gid_map", map))
                return 1;
        g_assert_cmpint(maps_open(victim, O_RDONLY), ==, -1);
        me = client_new("bob");
        refused_everywhere(me, DENIED, "namespace", 0, "procfd", procfd);
        return 0;
}

static void test_user_namespace(void) {
        g_autoptr(Actor) victim = victim_new();
        g_autoptr(Actor) attacker = actor_new("bob", play_user_namespace, &victim->pid);
        int status = actor_join(attacker);

        if (status == 77)
                g_test_skip("this machine lets no user make namespaces");
        else
                g_assert_cmpint(status, ==, 0);
}

/* False: the kernel has no Landlock. */
static bool landlock_enter(void) {
        const struct landlock_ruleset_attr attr = { .handled_access_fs =
                                                            LANDLOCK_ACCESS_FS_MAKE_BLOCK };
        _cleanup_close_ int ruleset =
                (int) syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

        if (ruleset < 0 && (errno == ENOSYS || errno == EOPNOTSUPP))
                return false;
        if (ruleset < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
                g_error("landlock: %s", g_strerror(errno));
        return true;
}

/* What a domain is for still works: itself, and its own children. */
static void count_within_domain(Client *me) {
        g_autoptr(sd_bus_message) own = NULL, m = stack_message(me, 0, NULL, -1);
        _cleanup_close_ int procfd = -1;
        g_autofree char *counter = NULL;
        pid_t child = fork();

        if (child == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        pause();
        }
        own = client_call_message(me, m);
        procfd = maps_open(child, O_RDONLY);
        g_assert_cmpint(procfd, >=, 0);
        counter = counter_open(me, "page-faults:u", "a{sv}", 1, "procfd", "h", procfd);
        counter_do(me, counter, "Close");
        (void) kill(child, SIGKILL);
        (void) waitpid(child, NULL, 0);
}

static int play_landlocked(int fd, const void *data) {
        pid_t victim = *(const pid_t *) data;
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, victim, 0), path = -1, own = -1;
        g_autoptr(Client) me = client_new("bob");

        if (!landlock_enter())
                return 77;
        g_assert_cmpint(maps_open(victim, O_RDONLY), ==, -1);
        refused_everywhere(me, DENIED, "procfd", victim, NULL, -1);
        refused_everywhere(me, DENIED, "procfd", 0, "pidfd", pidfd);
        path = maps_open(victim, O_PATH);
        g_assert_cmpint(path, >=, 0);
        refused_everywhere(me, PERFALLOC_ERROR_BAD_DESCRIPTOR, "pidfd", 0, "procfd", path);
        /* a proof of itself is none of its victim */
        own = maps_open(getpid(), O_RDONLY);
        client_refused(me, DENIED, MANAGER, "OpenCounters", "asa{sv}", 1, "page-faults:u", 2,
                       "pidfd", "h", pidfd, "procfd", "h", own);
        assert_names(me, "procfd");
        count_within_domain(me);
        return 0;
}

static void test_landlock(void) {
        g_autoptr(Actor) victim = victim_new();
        g_autoptr(Actor) attacker = actor_new("bob", play_landlocked, &victim->pid);
        int status = actor_join(attacker);

        if (status == 77)
                g_test_skip("this kernel has no Landlock");
        else
                g_assert_cmpint(status, ==, 0);
}

/* ---- descriptors ---- */

static void test_descriptors_that_prove_nothing(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autoptr(Actor) victim = victim_new();
        g_autofree char *status = g_strdup_printf("/proc/%d/status", (int) victim->pid);
        int fds[] = { open("/etc/passwd", O_RDONLY | O_CLOEXEC), memfd_create("maps", MFD_CLOEXEC),
                      open(status, O_RDONLY | O_CLOEXEC), maps_open(victim->pid, O_PATH),
                      (int) syscall(SYS_pidfd_open, victim->pid, 0) };

        for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
                g_assert_cmpint(fds[i], >=, 0);
                refused_everywhere(bob, PERFALLOC_ERROR_BAD_DESCRIPTOR, "/proc/PID/maps", 0,
                                   "procfd", fds[i]);
                close_fd(fds[i]);
        }
}

static void test_another_process(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autoptr(Actor) victim = victim_new(), other = victim_new();
        g_autoptr(sd_bus_message) m = NULL;
        g_autofree char *counter = unattached_open(bob);
        int proof = client_proof(bob, other->pid);

        client_refused(bob, PERFALLOC_ERROR_INVALID_PROCESS, MANAGER, "OpenCounters", "asa{sv}", 1,
                       "page-faults:u", 2, "pid", "u", (uint32_t) victim->pid, "procfd", "h",
                       proof);
        client_refused(bob, PERFALLOC_ERROR_INVALID_PROCESS, counter, COUNTER, "AttachProcess",
                       "ua{sv}", (uint32_t) victim->pid, 1, "procfd", "h", proof);
        m = stack_message(bob, victim->pid, "procfd", proof);
        client_refused_message(bob, SD_BUS_ERROR_INVALID_ARGS, m);
        assert_names(bob, "procfd");
}

/* A procfs of its own has the same numbers, but other files. */
static int play_mount(int fd, const void *data) {
        g_autofree char *path = g_strdup_printf("/tmp/%d/maps", (int) *(const pid_t *) data);
        g_autoptr(Client) me = NULL;
        _cleanup_close_ int procfd = -1;

        if (unshare(CLONE_NEWNS) < 0 || mount("proc", "/tmp", "proc", 0, NULL) < 0)
                return 1;
        become_bob();
        me = client_new("bob");
        procfd = open(path, O_RDONLY | O_CLOEXEC);
        g_assert_cmpint(procfd, >=, 0);
        refused_everywhere(me, PERFALLOC_ERROR_BAD_DESCRIPTOR, "host's /proc", 0, "procfd", procfd);
        return 0;
}

static void test_another_procfs(void) {
        g_autoptr(Actor) victim = victim_new();
        g_autoptr(Actor) attacker = actor_new("root", play_mount, &victim->pid);

        g_assert_cmpint(actor_join(attacker), ==, 0);
}

/* ---- numbers that are used again ---- */

static bool is_bobs(pid_t pid) {
        g_autofree char *path = g_strdup_printf("/proc/%d", (int) pid);
        struct stat st;

        return stat(path, &st) == 0 && st.st_uid == user_id("bob");
}

/* A process of bob's with that number; killed with the test. */
static void bob_take_number(pid_t pid) {
        const struct clone_args how = {
                .exit_signal = SIGCHLD,
                .set_tid = (uintptr_t) &pid,
                .set_tid_size = 1,
        };
        pid_t got = -1;

        await((got = (pid_t) syscall(SYS_clone3, &how, sizeof(how))) >= 0 || errno != EEXIST);
        if (got == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                become_bob();
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        pause();
        }
        g_assert_cmpint(got, ==, pid);
        await(is_bobs(pid));
}

static void number_give_back(pid_t pid) {
        g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
        g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

static void test_proof_of_a_number_used_again(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autoptr(Actor) first = victim_new();
        pid_t pid = first->pid;
        int proof = client_proof(bob, pid);

        g_assert_cmpint(actor_join(first), ==, 0);
        refused_everywhere(bob, PERFALLOC_ERROR_NO_SUCH_PROCESS, "ended", 0, "procfd", proof);
        bob_take_number(pid);
        refused_everywhere(bob, PERFALLOC_ERROR_BAD_DESCRIPTOR, "/proc/PID/maps", 0, "procfd",
                           proof);
        number_give_back(pid);
}

/* Connects, and passes the connection on. */
static int play_connection(int fd, const void *data) {
        struct sockaddr_un address = { .sun_family = AF_UNIX,
                                       .sun_path = "/run/dbus/system_bus_socket" };
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control = {};
        struct iovec iov = { (char[]){ 'c' }, 1 };
        struct msghdr m = { .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control) };
        int bus = socket(AF_UNIX, SOCK_STREAM, 0);

        if (bus < 0 || connect(bus, (struct sockaddr *) &address, sizeof(address)) < 0)
                return 1;
        control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                           .cmsg_type = SCM_RIGHTS,
                                           .cmsg_len = CMSG_LEN(sizeof(int)) };
        memcpy(CMSG_DATA(&control.header), &bus, sizeof(int));
        if (sendmsg(fd, &m, 0) != 1)
                return 1;
        (void) act_hear(fd);
        return 0;
}

static sd_bus *connection_receive(const Actor *a) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        char byte;
        struct iovec iov = { &byte, 1 };
        struct msghdr m = { .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control) };
        sd_bus *bus = NULL;
        int fd;

        g_assert_cmpint(recvmsg(a->fd, &m, MSG_CMSG_CLOEXEC), ==, 1);
        memcpy(&fd, CMSG_DATA(&control.header), sizeof(int));
        bus_check(sd_bus_new(&bus), "sd_bus_new");
        bus_check(sd_bus_set_fd(bus, fd, fd), "sd_bus_set_fd");
        bus_check(sd_bus_set_bus_client(bus, true), "sd_bus_set_bus_client");
        bus_check(sd_bus_negotiate_fds(bus, true), "sd_bus_negotiate_fds");
        bus_check(sd_bus_start(bus), "sd_bus_start");
        return bus;
}

/* A connection of a process that has ended does not speak for whoever has its number. */
static void test_caller_of_a_number_used_again(void) {
        g_autoptr(Client) client = client_new("bob");
        g_autoptr(Actor) first = actor_new("bob", play_connection, NULL);
        g_autoptr(sd_bus_message) m = NULL;
        pid_t pid = first->pid;

        sd_bus_flush_close_unref(client->bus);
        client->bus = connection_receive(first);
        client_greet(client);
        g_assert_cmpint(actor_join(first), ==, 0);
        bob_take_number(pid);
        client_refused(client, PERFALLOC_ERROR_NO_SUCH_PROCESS, MANAGER, "OpenCounters", "asa{sv}",
                       1, "page-faults:u", 0);
        assert_names(client, "procfd");
        m = stack_message(client, 0, NULL, -1);
        client_refused_message(client, PERFALLOC_ERROR_NO_SUCH_PROCESS, m);
        client_refused(client, DENIED, MANAGER, "OpenCounters", "asa{sv}", 1, "page-faults:u", 1,
                       "pid", "u", (uint32_t) pid);
        assert_names(client, "procfd");
        number_give_back(pid);
}

/* ---- what was authorized for another connection ---- */

static void test_descriptors_go_to_their_opener(void) {
        g_autoptr(Client) bob = client_new("bob"), again = client_new("bob"),
                          root = client_new("root");
        g_autoptr(Actor) victim = victim_new();
        g_autofree char *counter = counter_open_on(bob, "page-faults:u", victim->pid, false);

        client_refused(again, DENIED, counter, COUNTER, "GetFds", NULL);
        assert_names(again, "org.perfalloc1.count-other");
        sd_bus_message_unref(client_call(bob, counter, COUNTER, "GetFds", NULL));
        sd_bus_message_unref(client_call(root, counter, COUNTER, "GetFds", NULL));
}

/* The opener may live in a sandbox, and who attaches need not. */
static void test_descriptors_of_what_another_attached(void) {
        g_autoptr(Client) bob = client_new("bob"), another = client_new("bob");
        g_autoptr(Actor) victim = victim_new();
        g_autofree char *counter = counter_open(bob, "page-faults:u", UNATTACHED);

        attach(another, counter, victim->pid);
        client_refused(another, DENIED, counter, COUNTER, "GetFds", NULL);
        for (unsigned restarted = 0; restarted < 2; restarted++) {
                client_refused(bob, DENIED, counter, COUNTER, "GetFds", NULL);
                assert_names(bob, "org.perfalloc1.count-other");
                rig("service-restart", NULL);
        }
        detach(bob, counter, victim->pid);
        attach(bob, counter, victim->pid);
        rig("service-restart", NULL);
        sd_bus_message_unref(client_call(bob, counter, COUNTER, "GetFds", NULL));
}

/* No connection is then the one that opened it. carol has count-other. */
static void test_descriptors_after_an_adoption(void) {
        g_autoptr(Actor) victim = actor_new("carol", play_victim, NULL);
        g_autoptr(Client) adopter = client_new("carol");
        g_autoptr(sd_bus_message) reply = NULL;
        Client *first = client_new("carol");
        g_autofree char *counter = NULL;

        g_assert_cmpint(actor_hear(victim), ==, 'r');
        counter = counter_open_on(first, "page-faults:u", victim->pid, false);
        counter_do(first, counter, "Persist");
        client_free(first);
        counter_do(adopter, counter, "Adopt");
        reply = client_call(adopter, counter, COUNTER, "GetFds", NULL);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "h"), >, 0);
        g_assert_cmpint(sd_bus_message_read_basic(reply, 'h', &(int){ -1 }), >, 0);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        /* as in a local session */
        rig("rules 05-bob.rules",
            "polkit.addRule(function(action, subject) {"
            "  if (subject.user == 'bob' && action.id == 'org.perfalloc1.sample-own')"
            "    return polkit.Result.YES; });");
        g_test_add_func("/proof/a-pid-namespace-borrows-no-rights", test_pid_namespace);
        g_test_add_func("/proof/a-user-namespace-borrows-no-rights", test_user_namespace);
        g_test_add_func("/proof/a-landlock-domain-borrows-no-rights", test_landlock);
        g_test_add_func("/proof/descriptors-that-prove-nothing",
                        test_descriptors_that_prove_nothing);
        g_test_add_func("/proof/of-another-process", test_another_process);
        g_test_add_func("/proof/of-another-procfs", test_another_procfs);
        g_test_add_func("/proof/of-a-number-used-again", test_proof_of_a_number_used_again);
        g_test_add_func("/proof/the-caller's-number-used-again",
                        test_caller_of_a_number_used_again);
        g_test_add_func("/proof/descriptors-go-to-their-opener",
                        test_descriptors_go_to_their_opener);
        g_test_add_func("/proof/descriptors-of-what-another-attached",
                        test_descriptors_of_what_another_attached);
        g_test_add_func("/proof/descriptors-after-an-adoption", test_descriptors_after_an_adoption);
        return g_test_run();
}

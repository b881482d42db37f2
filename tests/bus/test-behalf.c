/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Holds on behalf of others: whose they are, what they are tied to, how they are named and
 * extended. */

#include "bus-util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXCLUSIVE "mode", "s", "exclusive"

static void assert_refused(Client *c, const char *error, const char *words, const char *types,
                           ...) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "HoldUnattended");
        va_list ap;

        bus_check(sd_bus_message_append(m, "st", "in vain", UINT64_C(0)), "HoldUnattended");
        va_start(ap, types);
        bus_check(sd_bus_message_appendv(m, types, ap), "HoldUnattended");
        va_end(ap);
        client_refused_message(c, error, m);
        if (!strstr(c->refusal, words))
                g_error("'%s' does not say %s", c->refusal, words);
}

static void assert_result(Client *c, const char *path, const char *result) {
        await(hold_is(c, path, "ended"));
        g_assert_true(client_reads(c, path, HOLD, "Result", result));
}

/* ---- whose it is ---- */

static void test_uid(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice"),
                          carol = client_new("carol");
        g_autofree char *path = NULL, *counter = NULL;

        path = hold_take_unattended(root, 0, "a{sv}", 3, BREAKPOINTS, EXCLUSIVE, "uid", "u",
                                    user_id("alice"));
        g_assert_true(hold_wait(alice, path));
        g_assert_cmpuint(client_get_number(root, path, HOLD, "Uid", 'u'), ==, user_id("alice"));
        g_assert_cmpuint(client_get_number(root, path, HOLD, "ExpireTimestamp", 't'), ==, 0);
        counter = counter_open(alice, "mem:0x1000:w", "a{sv}", 0);
        client_refused(carol, PERFALLOC_ERROR_BUSY, MANAGER, "OpenCounters", "asa{sv}", 1,
                       "mem:0x1000:w", 0);
        client_refused(root, PERFALLOC_ERROR_BUSY, MANAGER, "OpenCounters", "asa{sv}", 1,
                       "mem:0x1000:w", 0);
        client_refused(carol, PERFALLOC_ERROR_NOT_OWNER, path, HOLD, "Release", NULL);
        client_refused(carol, PERFALLOC_ERROR_NOT_OWNER, path, HOLD, "Extend", "t", UINT64_C(0));
        hold_release(alice, path);
        g_assert_true(client_reads(root, path, HOLD, "Result", "released"));
}

static void test_maker(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *path = NULL;

        path = hold_take_unattended(root, 0, "a{sv}", 1, "uid", "u", user_id("alice"));
        hold_release(root, path);
        g_assert_true(client_reads(alice, path, HOLD, "Result", "released"));
}

static void test_quota(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *first = NULL, *second = NULL;

        rig_configure("[Limits]\nHoldsPerUser=1\n");
        first = hold_take_unattended(root, 0, "a{sv}", 1, "uid", "u", user_id("alice"));
        client_refused(alice, SD_BUS_ERROR_LIMITS_EXCEEDED, MANAGER, "HoldUnattended", "sta{sv}",
                       "in vain", UINT64_C(0), 0);
        assert_refused(root, SD_BUS_ERROR_LIMITS_EXCEEDED, "HoldsPerUser", "a{sv}", 1, "uid", "u",
                       user_id("alice"));
        second = hold_take_unattended(root, 0, "a{sv}", 1, "uid", "u", user_id("bob"));
        hold_release(root, first);
        hold_release(root, second);
        rig_configure("");
}

static void test_manage(void) {
        g_autoptr(Client) alice = client_new("alice");
        _cleanup_close_ int self = (int) syscall(SYS_pidfd_open, getpid(), 0);

        assert_refused(alice, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                       "org.perfalloc1.manage", "a{sv}", 1, "uid", "u", user_id("alice"));
        assert_refused(alice, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                       "org.perfalloc1.manage", "a{sv}", 1, "tag", "s", "job-7");
        assert_refused(alice, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                       "org.perfalloc1.manage", "a{sv}", 1, "pidfd", "h", self);
}

/* The example of a rule, for a user who may hold for others, and is no manager otherwise. */
static void test_rule(void) {
        g_autoptr(Client) bob = client_new("bob"), alice = client_new("alice");
        g_autofree char *path = NULL, *others = NULL;

        rig("sed s/perfalloc-scheduler/bob/ "
            "$PERFALLOC_SOURCE/polkit/30-perfalloc-scheduler.rules | rules 30-perfalloc-scheduler",
            NULL);
        path = hold_take_unattended(bob, 0, "a{sv}", 3, BREAKPOINTS, "uid", "u", user_id("alice"),
                                    "tag", "s", "job-7");
        g_assert_true(hold_wait(alice, path));
        g_assert_cmpuint(client_get_number(bob, path, HOLD, "ExpireTimestamp", 't'), ==, 0);
        hold_release(bob, path);
        g_assert_true(client_reads(bob, path, HOLD, "Result", "released"));
        assert_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "manage", "a{sv}", 2,
                       "uid", "u", user_id("alice"), "tag", "s", "nightly");
        assert_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, "manage", "a{sv}", 2,
                       "uid", "u", 0, "tag", "s", "job-8");
        others = hold_take_unattended(alice, 0, "a{sv}", 0);
        client_refused(bob, PERFALLOC_ERROR_NOT_OWNER, others, HOLD, "Release", NULL);
        hold_release(alice, others);
        rig("rules --remove 30-perfalloc-scheduler", NULL);
}

/* ---- the tag ---- */

static void test_tag(void) {
        g_autoptr(Client) root = client_new("root"), again = client_new("root"),
                          alice = client_new("alice");
        g_autofree char *first = NULL, *second = NULL, *third = NULL;

        first = hold_take_unattended(root, 0, "a{sv}", 3, BREAKPOINTS, "uid", "u", user_id("alice"),
                                     "tag", "s", "job-7");
        second = hold_take_unattended(again, 0, "a{sv}", 3, BREAKPOINTS, "uid", "u",
                                      user_id("alice"), "tag", "s", "job-7");
        g_assert_cmpstr(first, ==, second);
        g_assert_true(client_reads(alice, first, HOLD, "Tag", "job-7"));
        assert_refused(root, SD_BUS_ERROR_INVALID_ARGS, "'tag'", "a{sv}", 2, "uid", "u",
                       user_id("bob"), "tag", "s", "job-7");
        assert_refused(root, SD_BUS_ERROR_INVALID_ARGS, "'tag'", "a{sv}", 4, BREAKPOINTS, EXCLUSIVE,
                       "uid", "u", user_id("alice"), "tag", "s", "job-7");
        hold_release(root, first);
        third = hold_take_unattended(root, 0, "a{sv}", 3, BREAKPOINTS, "uid", "u", user_id("alice"),
                                     "tag", "s", "job-7");
        g_assert_cmpstr(first, !=, third);
        hold_release(root, third);
}

/* Of two copies of the lease each is the lease. */
static void test_tag_and_lease(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = NULL, *second = NULL;
        int a, b;

        first = hold_take(root, &a, "a{sv}", 1, "tag", "s", "job-7");
        second = hold_take(root, &b, "a{sv}", 1, "tag", "s", "job-7");
        g_assert_cmpstr(first, ==, second);
        assert_refused(root, SD_BUS_ERROR_INVALID_ARGS, "'tag'", "a{sv}", 1, "tag", "s", "job-7");
        close_fd(a);
        g_free(hold_take(root, &a, "a{sv}", 1, "tag", "s", "job-7"));
        close_fd(b);
        g_assert_true(hold_wait(root, first));
        g_assert_true(hold_is(root, first, "granted"));
        close_fd(a);
        assert_result(root, first, "lease-closed");
}

static void test_busy_names_the_job(void) {
        g_autoptr(Client) root = client_new("root"), carol = client_new("carol");
        g_autofree char *path = NULL, *long_tag = g_strnfill(127, 'x');

        path = hold_take_unattended(root, 0, "a{sv}", 4, BREAKPOINTS, EXCLUSIVE, "uid", "u",
                                    user_id("alice"), "tag", "s", "job-7");
        client_refused(carol, PERFALLOC_ERROR_BUSY, MANAGER, "Hold", "sa{sv}", "in vain", 1,
                       BREAKPOINTS);
        g_assert_nonnull(strstr(carol->refusal, "uid 2001 (tag job-7, 'a test', exclusive"));
        g_assert_null(strstr(carol->refusal, "pid"));
        hold_release(root, path);
        g_free(path);
        /* a tag that is cut in the middle of a character */
        long_tag[46] = '\303', long_tag[47] = '\244', long_tag[48] = '\303', long_tag[49] = '\244';
        path = hold_take_unattended(root, 0, "a{sv}", 3, BREAKPOINTS, EXCLUSIVE, "tag", "s",
                                    long_tag);
        client_refused(carol, PERFALLOC_ERROR_BUSY, MANAGER, "Hold", "sa{sv}", "in vain", 1,
                       BREAKPOINTS);
        g_assert_nonnull(strstr(carol->refusal, "x\303\244, 'a test'"));
        hold_release(root, path);
}

/* ---- what it is tied to ---- */

static int play_idle(int fd, const void *data) {
        act_say(fd, 'r');
        (void) act_hear(fd);
        return 0;
}

static void test_pidfd(void) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) job = actor_new("alice", play_idle, NULL);
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, job->pid, 0);
        g_autofree char *path = NULL, *leased = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take_unattended(root, 0, "a{sv}", 1, "pidfd", "h", pidfd);
        leased = hold_take(root, &lease, "a{sv}", 1, "pidfd", "h", pidfd);
        g_assert_true(hold_wait(root, path));
        g_assert_true(hold_wait(root, leased));
        (void) actor_join(job);
        assert_result(root, path, "lease-closed");
        assert_result(root, leased, "lease-closed");
        assert_refused(root, PERFALLOC_ERROR_NO_SUCH_PROCESS, "'pidfd'", "a{sv}", 1, "pidfd", "h",
                       pidfd);
}

/* The process ends while the service does not run. */
static void test_pidfd_over_restart(void) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) job = actor_new("alice", play_idle, NULL);
        g_autoptr(Actor) other = actor_new("alice", play_idle, NULL);
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, job->pid, 0);
        _cleanup_close_ int kept_pidfd = (int) syscall(SYS_pidfd_open, other->pid, 0);
        g_autofree char *path = NULL, *kept = NULL, *again = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take_unattended(root, 0, "a{sv}", 2, "pidfd", "h", pidfd, "tag", "s", "job-7");
        kept = hold_take(root, &lease, "a{sv}", 4, BREAKPOINTS, "pidfd", "h", kept_pidfd, "tag",
                         "s", "job-8", "uid", "u", user_id("alice"));
        g_assert_true(hold_wait(root, path));
        g_assert_true(hold_wait(root, kept));
        g_assert_cmpint(kill(service_pid(), SIGSTOP), ==, 0);
        (void) actor_join(job);
        rig("service-kill --again", NULL);
        assert_result(root, path, "lease-closed");
        g_assert_true(hold_is(root, kept, "granted"));
        g_assert_cmpuint(client_get_number(root, kept, HOLD, "Uid", 'u'), ==, user_id("alice"));
        again = hold_take(root, &lease, "a{sv}", 3, BREAKPOINTS, "tag", "s", "job-8", "uid", "u",
                          user_id("alice"));
        g_assert_cmpstr(again, ==, kept);
        (void) actor_join(other);
        assert_result(root, kept, "lease-closed");
}

/* A cgroup2 of the test's own; the rest of the machine is not touched. */
static char *cgroup_new(void) {
        char *path;

        (void) mkdir("/run/cgroup", 0755);
        if (access("/run/cgroup/cgroup.procs", F_OK) < 0 &&
            mount("cgroup2", "/run/cgroup", "cgroup2", 0, NULL) < 0)
                return NULL;
        path = g_strdup_printf("/run/cgroup/perfalloc-test-%d", (int) getpid());
        return mkdir(path, 0755) < 0 && errno != EEXIST ? NULL : path;
}

static void cgroup_move(const char *cgroup, pid_t pid) {
        g_autofree char *path = g_build_filename(cgroup, "cgroup.procs", NULL);
        FILE *f = fopen(path, "we");

        g_assert_nonnull(f);
        fprintf(f, "%d\n", (int) pid);
        g_assert_cmpint(fclose(f), ==, 0);
}

static void test_cgroup(void) {
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) one = actor_new("alice", play_idle, NULL);
        g_autoptr(Actor) two = actor_new("alice", play_idle, NULL);
        g_autofree char *cgroup = cgroup_new(), *below = NULL, *path = NULL;
        _cleanup_close_ int fd = -1;

        if (!cgroup) {
                g_test_skip("no cgroup2 can be made here");
                return;
        }
        fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_refused(root, SD_BUS_ERROR_INVALID_ARGS, "no process is in", "a{sv}", 1, "cgroup",
                       "h", fd);
        below = g_build_filename(cgroup, "below", NULL);
        (void) mkdir(below, 0755);
        cgroup_move(cgroup, one->pid);
        cgroup_move(below, two->pid);
        path = hold_take_unattended(root, 0, "a{sv}", 1, "cgroup", "h", fd);
        g_assert_true(hold_wait(root, path));
        (void) actor_join(one);
        rig("service-kill --again", NULL);
        g_assert_true(hold_is(root, path, "granted"));
        (void) actor_join(two);
        assert_result(root, path, "lease-closed");
        await(rmdir(below) == 0 || errno == ENOENT);
        await(rmdir(cgroup) == 0 || errno == ENOENT);
}

/* ---- bad input ---- */

static void test_bad_input(void) {
        g_autoptr(Client) root = client_new("root");
        _cleanup_close_ int self = (int) syscall(SYS_pidfd_open, getpid(), 0);
        _cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        _cleanup_close_ int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        g_autofree char *longest = g_strnfill(128, 'x'), *longer = g_strnfill(129, 'x');
        g_autofree char *path = NULL;

        assert_refused(root, SD_BUS_ERROR_INVALID_ARGS, "'uid'", "a{sv}", 1, "uid", "u",
                       UINT32_MAX);
        assert_refused(root, SD_BUS_ERROR_INVALID_ARGS, "'uid'", "a{sv}", 1, "uid", "s", "alice");
        assert_refused(root, SD_BUS_ERROR_INVALID_ARGS, "'tag'", "a{sv}", 1, "tag", "s", "");
        assert_refused(root, SD_BUS_ERROR_INVALID_ARGS, "'tag'", "a{sv}", 1, "tag", "s", "a\nb");
        assert_refused(root, SD_BUS_ERROR_INVALID_ARGS, "'tag'", "a{sv}", 1, "tag", "s", longer);
        assert_refused(root, PERFALLOC_ERROR_BAD_DESCRIPTOR, "'pidfd'", "a{sv}", 1, "pidfd", "h",
                       null);
        assert_refused(root, PERFALLOC_ERROR_BAD_DESCRIPTOR, "'pidfd'", "a{sv}", 1, "pidfd", "h",
                       proc);
        assert_refused(root, PERFALLOC_ERROR_BAD_DESCRIPTOR, "'cgroup'", "a{sv}", 1, "cgroup", "h",
                       null);
        assert_refused(root, PERFALLOC_ERROR_BAD_DESCRIPTOR, "'cgroup'", "a{sv}", 1, "cgroup", "h",
                       proc);
        assert_refused(root, SD_BUS_ERROR_INVALID_ARGS, "exclude each other", "a{sv}", 2, "cgroup",
                       "h", proc, "pidfd", "h", self);
        path = hold_take_unattended(root, 0, "a{sv}", 1, "tag", "s", longest);
        hold_release(root, path);
        client_refused(root, PERFALLOC_ERROR_ENDED, path, HOLD, "Extend", "t", UINT64_C(1));
}

/* ---- how long it lasts ---- */

static uint64_t expires(Client *c, const char *path) {
        return client_get_number(c, path, HOLD, "ExpireTimestamp", 't');
}

static void test_extend(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *path = NULL;
        uint64_t first, now;

        path = hold_take_unattended(alice, 3600 * USEC_PER_SEC, "a{sv}", 0);
        first = expires(alice, path);
        now = (uint64_t) g_get_real_time();
        sd_bus_message_unref(client_call(alice, path, HOLD, "Extend", "t", 7200 * USEC_PER_SEC));
        g_assert_cmpuint(expires(alice, path), >=, now + 7200 * USEC_PER_SEC);
        g_assert_cmpuint(expires(alice, path), >, first);
        /* without manage not beyond HoldMaxSec, however it is put */
        sd_bus_message_unref(client_call(alice, path, HOLD, "Extend", "t", UINT64_C(0)));
        g_assert_cmpuint(expires(alice, path), >=, now + 8 * 3600 * USEC_PER_SEC);
        g_assert_cmpuint(expires(alice, path), <=,
                         (uint64_t) g_get_real_time() + 8 * 3600 * USEC_PER_SEC);
        sd_bus_message_unref(client_call(alice, path, HOLD, "Extend", "t", UINT64_MAX));
        g_assert_cmpuint(expires(alice, path), <=,
                         (uint64_t) g_get_real_time() + 8 * 3600 * USEC_PER_SEC);
        sd_bus_message_unref(client_call(root, path, HOLD, "Extend", "t", UINT64_C(0)));
        g_assert_cmpuint(expires(alice, path), ==, 0);
        sd_bus_message_unref(client_call(alice, path, HOLD, "Extend", "t", UINT64_C(1)));
        assert_result(alice, path, "expired");
}

static void test_extend_over_restart(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;
        uint64_t until;

        path = hold_take_unattended(alice, 3600 * USEC_PER_SEC, "a{sv}", 0);
        sd_bus_message_unref(client_call(alice, path, HOLD, "Extend", "t", 7200 * USEC_PER_SEC));
        until = expires(alice, path);
        rig("service-kill --again", NULL);
        g_assert_cmpuint(expires(alice, path), ==, until);
        hold_release(alice, path);
}

/* The next signal of the hold with that name; NULL: none has come by now. */
static sd_bus_message *hear(Client *c, const char *path, const char *interface,
                            const char *member) {
        /* what was sent before the answer has arrived with it */
        g_free(client_get(c, path, HOLD, "State"));
        for (;;) {
                sd_bus_message *m = client_next(c, 0);

                if (!m || (sd_bus_message_is_signal(m, interface, member) > 0 &&
                           strcmp(sd_bus_message_get_path(m), path) == 0))
                        return m;
                sd_bus_message_unref(m);
        }
}

static bool heard(Client *c, const char *path, const char *interface, const char *member) {
        g_autoptr(sd_bus_message) m = hear(c, path, interface, member);

        return m;
}

static void test_expiring(void) {
        g_autoptr(Client) alice = client_new("alice"), other = client_new("alice");
        g_autoptr(sd_bus_message) m = NULL;
        g_autofree char *path = NULL;
        uint64_t timestamp;

        client_watch(alice);
        client_watch(other);
        path = hold_take_unattended(alice, 300 * USEC_PER_SEC, "a{sv}", 0);
        service_clock_forward(230 * USEC_PER_SEC);
        g_assert_false(heard(alice, path, HOLD, "Expiring"));
        service_clock_forward(10 * USEC_PER_SEC);
        await((m = hear(alice, path, HOLD, "Expiring")));
        g_assert_cmpint(sd_bus_message_read(m, "t", &timestamp), >, 0);
        g_assert_cmpuint(timestamp, ==, expires(alice, path));
        g_assert_false(heard(other, path, HOLD, "Expiring"));
        /* each expiry is told once */
        sd_bus_message_unref(client_call(other, path, HOLD, "Extend", "t", 300 * USEC_PER_SEC));
        g_assert_true(heard(other, path, "org.freedesktop.DBus.Properties", "PropertiesChanged"));
        service_clock_forward(230 * USEC_PER_SEC);
        g_assert_false(heard(alice, path, HOLD, "Expiring"));
        service_clock_forward(10 * USEC_PER_SEC);
        await(heard(alice, path, HOLD, "Expiring"));
        service_clock_forward(60 * USEC_PER_SEC);
        assert_result(alice, path, "expired");
        g_assert_false(heard(alice, path, HOLD, "Expiring"));
        g_assert_false(heard(other, path, HOLD, "Expiring"));
}

/* A restart neither forgets the warning nor repeats it. */
static void test_expiring_over_restart(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *warned = NULL, *unwarned = NULL;

        rig("service-stop && service-start", NULL); /* its clock is the kernel's again */
        client_watch(alice);
        warned = hold_take_unattended(alice, 50 * USEC_PER_SEC, "a{sv}", 0);
        unwarned = hold_take_unattended(alice, 300 * USEC_PER_SEC, "a{sv}", 0);
        await(heard(alice, warned, HOLD, "Expiring"));
        rig("service-kill --again", NULL);
        service_clock_forward(240 * USEC_PER_SEC);
        await(heard(alice, unwarned, HOLD, "Expiring"));
        g_assert_false(heard(alice, warned, HOLD, "Expiring"));
        hold_release(alice, unwarned);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/behalf/hold-is-its-users", test_uid);
        g_test_add_func("/behalf/maker-releases", test_maker);
        g_test_add_func("/behalf/limits-are-its-users", test_quota);
        g_test_add_func("/behalf/needs-manage", test_manage);
        g_test_add_func("/behalf/rule-for-a-scheduler", test_rule);
        g_test_add_func("/behalf/tag-finds-the-living-hold", test_tag);
        g_test_add_func("/behalf/tag-gives-another-copy-of-the-lease", test_tag_and_lease);
        g_test_add_func("/behalf/busy-names-the-job", test_busy_names_the_job);
        g_test_add_func("/behalf/ends-with-the-process", test_pidfd);
        g_test_add_func("/behalf/ends-with-a-process-that-ended-unwatched",
                        test_pidfd_over_restart);
        g_test_add_func("/behalf/ends-with-the-last-process-of-a-cgroup", test_cgroup);
        g_test_add_func("/behalf/bad-input-is-named", test_bad_input);
        g_test_add_func("/behalf/extend", test_extend);
        g_test_add_func("/behalf/extension-outlives-a-restart", test_extend_over_restart);
        g_test_add_func("/behalf/expiring-is-told-to-the-client-alone", test_expiring);
        g_test_add_func("/behalf/warning-outlives-a-restart", test_expiring_over_restart);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/process/users.h"

#include <fcntl.h>
#include <glib.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "machine.h"
#include "perf/pmu/event-order.h"
#include "perf/process/test-child.h"

static int event_open(void) {
        struct perf_event_attr attr = {
                .size = sizeof(attr),
                .type = PERF_TYPE_SOFTWARE,
                .config = PERF_COUNT_SW_DUMMY,
                .exclude_kernel = 1,
        };
        int fd = (int) syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

        if (fd < 0)
                _exit(1);
        return fd;
}

static int user_add(void *userdata, const User *user) {
        g_array_append_vals(userdata, user, 1);
        return 0;
}

static GArray *scan(const pid_t *skip, size_t n_skip) {
        GArray *users = g_array_new(FALSE, FALSE, sizeof(User));

        g_assert_cmpint(users_scan(skip, n_skip, user_add, users), ==, 0);
        return users;
}

/* Ignores other processes with events on this machine. */
static const User *find(const GArray *users, pid_t pid) {
        const User *found = NULL;

        for (guint i = 0; i < users->len; i++)
                if (g_array_index(users, User, i).pid == pid) {
                        g_assert_null(found);
                        found = &g_array_index(users, User, i);
                }
        return found;
}

/* What a scan finds of a child that has run setup. False: nothing. */
static bool scan_child(void (*setup)(void *), void *userdata, User *ret) {
        pid_t pid = child_start(setup, userdata);
        GArray *users = scan(NULL, 0);
        const User *user = find(users, pid);

        if (user)
                *ret = *user;
        g_array_unref(users);
        child_end(pid);
        return user;
}

static void open_three(void *userdata) {
        (void) prctl(PR_SET_NAME, "three events");
        for (int i = 0; i < 3; i++)
                (void) event_open();
}

static void test_descriptors_are_counted(void) {
        User u;

        g_assert_true(scan_child(open_three, NULL, &u));
        g_assert_cmpuint(u.n_descriptors, ==, 3);
        g_assert_cmpuint(u.uid, ==, geteuid());
        g_assert_cmpstr(u.command, ==, "three events");
}

static void test_the_age_of_the_oldest_is_told(void) {
        uint64_t before = event_order_now();
        pid_t pid = child_start(open_three, NULL);
        uint64_t after = event_order_now();
        GArray *users = scan(NULL, 0);
        const User *u = find(users, pid);

        g_assert_nonnull(u);
        g_assert_cmpuint(u->oldest, >, before);
        g_assert_cmpuint(u->oldest, <, after);
        g_array_unref(users);
        child_end(pid);
}

static void map_alone(void *userdata) {
        int fd = event_open();

        if (mmap(NULL, 2 * (size_t) getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
            MAP_FAILED)
                _exit(1);
        close(fd);
}

static void test_an_event_that_is_only_mapped_is_seen(void) {
        User u;

        g_assert_true(scan_child(map_alone, NULL, &u));
        g_assert_cmpuint(u.n_descriptors, ==, 0);
}

static void test_who_has_none_is_not_listed(void) {
        User u;

        g_assert_false(scan_child(NULL, NULL, &u));
}

/* A file of that name, open and mapped. */
static void pretend(void *userdata) {
        int fd = open(userdata, O_RDWR | O_CREAT, 0600);

        if (fd < 0 || ftruncate(fd, 4096) < 0 ||
            mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
                _exit(1);
}

static void test_a_file_of_that_name_is_none(void) {
        _cleanup_free_ char *path = NULL;
        char directory[] = "/tmp/test-users-XXXXXX";
        User u;

        g_assert_nonnull(mkdtemp(directory));
        g_assert_cmpint(asprintf(&path, "%s/anon_inode:[perf_event]", directory), >, 0);
        g_assert_false(scan_child(pretend, path, &u));
        g_assert_cmpint(unlink(path), ==, 0);
        g_assert_cmpint(rmdir(directory), ==, 0);
}

static void test_who_is_to_be_skipped_is(void) {
        pid_t a = child_start(open_three, NULL), b = child_start(open_three, NULL);
        GArray *users = scan((pid_t[]){ getpid(), a }, 2);

        g_assert_null(find(users, a));
        g_assert_nonnull(find(users, b));
        g_array_unref(users);
        child_end(a);
        child_end(b);
}

static void name_badly(void *userdata) {
        (void) prctl(PR_SET_NAME, "\033[2J\n\xff)");
        (void) event_open();
}

static void test_names_are_fit_to_be_shown(void) {
        User u;

        g_assert_true(scan_child(name_badly, NULL, &u));
        g_assert_cmpint(strlen(u.command), >, 0);
        for (const char *p = u.command; *p; p++)
                g_assert_true(g_ascii_isprint(*p));
        for (const char *p = u.unit; *p; p++)
                g_assert_true(g_ascii_isprint(*p));
}

/* Processes with events that live for some hundred microseconds each. */
static void come_and_go(void *userdata) {
        if (!child_fork())
                return;
        (void) signal(SIGCHLD, SIG_IGN);
        for (;;) {
                if (fork() == 0) {
                        (void) event_open();
                        _exit(0);
                }
                g_usleep(100);
        }
}

static void test_processes_may_come_and_go(void) {
        pid_t storm = child_start(come_and_go, NULL), steady = child_start(open_three, NULL);

        for (int i = 0; i < 50; i++) {
                GArray *users = scan(NULL, 0);

                g_assert_nonnull(find(users, steady));
                g_array_unref(users);
        }
        child_end(storm);
        child_end(steady);
}

static int user_refuse(void *userdata, const User *user) {
        ++*(int *) userdata;
        return -ENOSPC;
}

static void test_who_has_enough_ends_the_scan(void) {
        pid_t a = child_start(open_three, NULL), b = child_start(open_three, NULL);
        int n = 0;

        g_assert_cmpint(users_scan(NULL, 0, user_refuse, &n), ==, -ENOSPC);
        g_assert_cmpint(n, ==, 1);
        child_end(a);
        child_end(b);
}

static void test_the_unit_is_the_innermost(void) {
        static const struct {
                const char *cgroup, *unit;
        } cases[] = {
                { "0::/a.slice/b.service\n", "b.service" },
                { "0::/b.slice/b.service/payload/c\n", "b.service" },
                { "0::/user.slice/user-1.slice/user@1.service/app.slice/d.scope\n", "d.scope" },
                { "0::/user.slice/user-1.slice/user@1.service/app.slice\n", "user@1.service" },
                { "0::/e.slice/f.slice\n", "f.slice" },
                { "0::/f/.service\n", "" },
                { "0::/\n", "" },
                { "0::/../../g.service", "g.service" },
                { "0::/\033[2J\xff.service\n", "?[2J?.service" },
                /* version 1 beside: systemd's own hierarchy, or none */
                { "9:name=systemd:/h.service\n4:memory:/x.service\n0::/\n", "h.service" },
                { "9:name=systemd:/\n4:memory:/x.service\n0::/i.service\n", "i.service" },
                { "4:memory:/x.service\n", "" },
                { "", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char unit[256] = "";

                user_unit(cases[i].cgroup, unit, sizeof(unit));
                g_assert_cmpstr(unit, ==, cases[i].unit);
        }
}

static void test_a_long_unit_is_cut(void) {
        char cgroup[1024] = "0::/", unit[256] = "";

        memset(cgroup + 4, 'a', 1000);
        memcpy(cgroup + 1004, ".service", sizeof(".service"));
        user_unit(cgroup, unit, sizeof(unit));
        g_assert_cmpuint(strlen(unit), ==, sizeof(unit) - 1);
}

static int sleep_on(void *userdata) {
        child_end_with(*(const pid_t *) userdata);
        while (pause() < 0)
                ;
        return 0;
}

/* Processes of one memory: under a sanitizer a copy for each would take most of the test's time. */
static void start_sleeping(pid_t *pids, size_t n, char *stacks, size_t stack_size) {
        static pid_t parent;

        parent = getpid();
        for (size_t i = 0; i < n; i++) {
                pids[i] =
                        clone(sleep_on, stacks + (i + 1) * stack_size, CLONE_VM | SIGCHLD, &parent);
                g_assert_cmpint(pids[i], >, 0);
        }
}

static void test_a_thousand_processes_are_soon_seen(void) {
        enum { N = 1000, STACK = 16384 };
        g_autofree char *stacks = g_malloc(N * STACK);
        pid_t with = child_start(open_three, NULL), pids[N];
        gint64 begun, took;
        GArray *users;

        start_sleeping(pids, N, stacks, STACK);
        begun = g_get_monotonic_time();
        users = scan(NULL, 0);
        took = g_get_monotonic_time() - begun;
        g_test_message("%d processes took %" G_GINT64_FORMAT " us", N, took);
        g_assert_nonnull(find(users, with));
        g_array_unref(users);
        child_end(with);
        for (int i = 0; i < N; i++)
                child_end(pids[i]);
}

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_PROC | MACHINE_EVENTS))
                return 0;
        g_test_init(&argc, &argv, NULL);
#define TEST(name) g_test_add_func("/users/" #name, test_##name)
        TEST(descriptors_are_counted);
        TEST(the_age_of_the_oldest_is_told);
        TEST(an_event_that_is_only_mapped_is_seen);
        TEST(who_has_none_is_not_listed);
        TEST(a_file_of_that_name_is_none);
        TEST(who_is_to_be_skipped_is);
        TEST(names_are_fit_to_be_shown);
        TEST(processes_may_come_and_go);
        TEST(who_has_enough_ends_the_scan);
        TEST(the_unit_is_the_innermost);
        TEST(a_long_unit_is_cut);
        TEST(a_thousand_processes_are_soon_seen);
        return g_test_run();
}

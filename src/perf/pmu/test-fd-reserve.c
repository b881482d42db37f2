/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* before GLib, which has MIN and MAX of its own */
#include "core/util.h"

#include "perf/pmu/fd-reserve.h"

#include <fcntl.h>
#include <glib.h>
#include <sys/resource.h>

static void limit_set(rlim_t soft) {
        struct rlimit limit;

        g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        limit.rlim_cur = soft;
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
}

static int descriptor_at(int n) {
        int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, n);

        g_assert_cmpint(fd, ==, n);
        return fd;
}

static bool is_open(int fd) {
        return fcntl(fd, F_GETFD) >= 0;
}

/* An eighth of few. */
static void test_few(void) {
        limit_set(64);
        g_assert_cmpint(fd_reserve_check(descriptor_at(55), fd_reserve_first()), ==, 55);
        g_assert_true(is_open(55));
        close_fd(55);
        g_assert_cmpint(fd_reserve_check(descriptor_at(56), fd_reserve_first()), ==, -EMFILE);
        g_assert_false(is_open(56));
        g_assert_cmpint(fd_reserve_check(-EACCES, fd_reserve_first()), ==, -EACCES);
}

static void test_many(void) {
        const rlim_t many = 4096;
        const int first = 4096 - FD_RESERVE;
        struct rlimit limit;

        g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        if (limit.rlim_max < many) {
                g_test_skip("may not have so many descriptors");
                return;
        }
        limit_set(many);
        g_assert_cmpuint(fd_reserve_first(), ==, first);
        g_assert_cmpint(fd_reserve_check(descriptor_at(first - 1), first), ==, first - 1);
        close_fd(first - 1);
        g_assert_cmpint(fd_reserve_check(descriptor_at(first), first), ==, -EMFILE);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/fd-reserve/an-eighth-of-few-descriptors-is-not-for-events", test_few);
        g_test_add_func("/fd-reserve/some-of-many-are-not", test_many);
        return g_test_run();
}

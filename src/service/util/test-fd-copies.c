/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/util/fd-copies.h"

#include <fcntl.h>
#include <glib.h>
#include <poll.h>

static bool other_end_is_open(int fd) {
        struct pollfd p = { .fd = fd };

        return poll(&p, 1, 0) == 0;
}

/* The write ends of three pipes, the first and last of which are copied. */
static void test_last(void) {
        int ends[3][2], copied[2];
        FdCopies c;

        for (size_t i = 0; i < ELEMENTSOF(ends); i++)
                g_assert_cmpint(pipe2(ends[i], O_CLOEXEC), ==, 0);
        copied[0] = ends[2][1];
        copied[1] = ends[0][1];
        g_assert_cmpint(fd_copies_make(&c, copied, ELEMENTSOF(copied)), ==, 0);
        for (size_t i = 0; i < ELEMENTSOF(ends); i++)
                close(ends[i][1]);
        g_assert_true(other_end_is_open(ends[0][0]));
        g_assert_false(other_end_is_open(ends[1][0]));
        g_assert_true(other_end_is_open(ends[2][0]));
        fd_copies_drop(&c);
        /* the thread may still be closing them */
        for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
                struct pollfd p = { .fd = ends[i][0] };

                g_assert_cmpint(poll(&p, 1, 60000), ==, 1);
                close(ends[i][0]);
        }
}

static void test_none(void) {
        FdCopies c;

        g_assert_cmpint(fd_copies_make(&c, NULL, 0), ==, 0);
        fd_copies_drop(&c);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/fd-copies/are-closed-last", test_last);
        g_test_add_func("/fd-copies/of-nothing", test_none);

        return g_test_run();
}

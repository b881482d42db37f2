/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/hold/hold-tie.h"

#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <sys/mount.h>

#include "machine.h"

static void test_directory_of_something_else(void) {
        _cleanup_close_ int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        Refusal why = REFUSAL_NULL;
        HoldTie tie = HOLD_TIE_NULL;

        g_assert_cmpint(hold_tie_to_cgroup(&tie, proc, &why), ==, REFUSAL_BAD_DESCRIPTOR);
        g_assert_cmpint(tie.fd, ==, -1);
}

/* The root of a file system whose server answers nothing; -1: none can be mounted. */
static int silent_directory(const char *path) {
        int server = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        g_autofree char *options =
                g_strdup_printf("fd=%d,rootmode=40000,user_id=0,group_id=0", server);

        if (server < 0 || unshare(CLONE_NEWNS) < 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("silent", path, "fuse", 0, options) < 0)
                return -1;
        return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

enum { TIED_REFUSED, TIED_OTHERWISE, TIED_NOT };

static int tie_to_silent_directory(const char *path) {
        HoldTie tie = HOLD_TIE_NULL;
        Refusal why = REFUSAL_NULL;
        int fd;

        (void) alarm(10);
        fd = silent_directory(path);
        if (fd < 0)
                return TIED_NOT;
        return hold_tie_to_cgroup(&tie, fd, &why) == REFUSAL_BAD_DESCRIPTOR ? TIED_REFUSED
                                                                            : TIED_OTHERWISE;
}

static void test_file_system_that_does_not_answer(void) {
        g_autofree char *path = NULL;
        int status;
        pid_t pid;

        if (machine_lacks(MACHINE_PROC | MACHINE_ROOT))
                return;
        path = g_dir_make_tmp("perfalloc-tie-XXXXXX", NULL);
        pid = fork();
        if (pid == 0)
                _exit(tie_to_silent_directory(path));
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        (void) rmdir(path);
        g_assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == TIED_NOT)
                g_test_skip("not on this machine: no FUSE can be mounted");
        else
                g_assert_cmpint(WEXITSTATUS(status), ==, TIED_REFUSED);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/hold-tie/directory-of-something-else-is-refused",
                        test_directory_of_something_else);
        g_test_add_func("/machine/hold-tie/file-system-that-does-not-answer-is-not-asked",
                        test_file_system_that_does_not_answer);

        return g_test_run();
}

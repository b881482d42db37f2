/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/lockfile.h"

#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char *file;

/* As pmdaperfevent(1) does: would a write lock on the first byte conflict, and with which
 * process? */
static struct flock look(const char *path) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
        int fd = open(path, O_RDWR | O_CLOEXEC);

        g_assert_cmpint(fd, >=, 0);
        g_assert_cmpint(fcntl(fd, F_GETLK, &lock), ==, 0);
        close(fd);
        return lock;
}

/* Runs f in a process of its own, because locks of one process do not conflict. */
static void in_child(void (*f)(void)) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                f();
                _exit(0);
        }
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        g_assert_cmpint(status, ==, 0);
}

static void see_read_lock_of_parent(void) {
        struct flock lock = look(file);

        if (lock.l_type != F_RDLCK || lock.l_pid != getppid() || lock.l_start != 0 ||
            lock.l_len != 1)
                _exit(1);
}

static void pmdaperfevent_sees_the_lock(void) {
        int fd = -1;

        g_assert_cmpint(lockfile_take(file, &fd, NULL), ==, 0);
        g_assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        in_child(see_read_lock_of_parent);
        close(fd);
}

static void take_it_too(void) {
        int fd;

        if (lockfile_take(file, &fd, NULL) != 0)
                _exit(1);
}

static void two_have_it_side_by_side(void) {
        int fd = -1;

        g_assert_cmpint(lockfile_take(file, &fd, NULL), ==, 0);
        in_child(take_it_too);
        close(fd);
}

static void writer_is_named_not_waited_for(void) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
        int ready[2], status, fd = -1;
        Refusal why = REFUSAL_NULL;
        char pid_words[32], byte;
        pid_t pid;

        g_assert_cmpint(pipe(ready), ==, 0);
        pid = fork();
        if (pid == 0) {
                int own = open(file, O_RDWR);

                if (fcntl(own, F_SETLK, &lock) < 0 || write(ready[1], "", 1) != 1)
                        _exit(1);
                for (;;)
                        pause();
        }
        g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
        g_assert_cmpint(lockfile_take(file, &fd, &why), ==, REFUSAL_BUSY);
        g_snprintf(pid_words, sizeof(pid_words), "by pid %d", (int) pid);
        g_assert_nonnull(strstr(why.text, pid_words));
        g_assert_cmpint(fd, ==, -1);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        close(ready[0]);
        close(ready[1]);
}

static void what_is_no_regular_file_is_refused(void) {
        char *fifo = g_strconcat(file, ".fifo", NULL);
        const char *paths[] = { "/dev/null", "/", fifo };
        Refusal why;
        int fd = -1;

        g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
        for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
                g_assert_cmpint(lockfile_take(paths[i], &fd, &why), ==, REFUSAL_INVALID_ARGS);
                g_assert_nonnull(strstr(why.text, "not a regular file"));
        }
        g_assert_cmpint(fd, ==, -1);
        g_unlink(fifo);
        g_free(fifo);
}

static void missing_file_is_refused_not_made(void) {
        char *path = g_strconcat(file, ".missing", NULL);
        Refusal why;
        int fd = -1;

        g_assert_cmpint(lockfile_take(path, &fd, &why), ==, REFUSAL_INVALID_ARGS);
        g_assert_nonnull(strstr(why.text, path));
        g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
        g_free(path);
}

int main(int argc, char **argv) {
        int fd, r;

        g_test_init(&argc, &argv, NULL);
        fd = g_file_open_tmp("perfalloc-lock-XXXXXX", &file, NULL);
        g_assert_cmpint(fd, >=, 0);
        close(fd);
        g_test_add_func("/lockfile/pmdaperfevent-sees-the-lock", pmdaperfevent_sees_the_lock);
        g_test_add_func("/lockfile/two-have-it-side-by-side", two_have_it_side_by_side);
        g_test_add_func("/lockfile/writer-is-named-not-waited-for", writer_is_named_not_waited_for);
        g_test_add_func("/lockfile/what-is-no-regular-file-is-refused",
                        what_is_no_regular_file_is_refused);
        g_test_add_func("/lockfile/missing-file-is-refused-not-made",
                        missing_file_is_refused_not_made);
        r = g_test_run();
        g_unlink(file);
        g_free(file);
        return r;
}

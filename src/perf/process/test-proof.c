/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/process/proof.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "machine.h"
#include "perf/process/process.h"
#include "perf/process/test-child.h"
#include "perf/process/test-target.h"

#define HOST "/proc" /* what users may reach of PROOF_HOST */

static int file_open(pid_t pid, const char *name, int flags) {
        g_autofree char *path = g_strdup_printf("/proc/%d/%s", (int) pid, name);
        int fd = open(path, flags | O_CLOEXEC);

        g_assert_cmpint(fd, >=, 0);
        return fd;
}

static int proof_of(int fd, pid_t *ret_pid) {
        _cleanup_close_ int pidfd = -1;
        Refusal why = REFUSAL_NULL;
        int r = proof_open(fd, HOST, &pidfd, &why);

        if (r > 0)
                g_assert_cmpstr(why.text, !=, "");
        if (r == 0)
                g_assert_cmpint(process_from_pidfd(pidfd, ret_pid, NULL), ==, 0);
        else
                g_assert_cmpint(pidfd, ==, -1);
        return r;
}

static int proof_for(int fd, pid_t pid) {
        _cleanup_close_ int pidfd = -1;
        Refusal why;

        g_assert_cmpint(process_open(pid, &pidfd, NULL), ==, 0);
        return proof_check(fd, HOST, pidfd, &why);
}

static void test_files_that_prove(void) {
        static const char *const names[] = { "maps", "auxv", "environ" };
        pid_t child = child_start(NULL, NULL), pid;

        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
                _cleanup_close_ int fd = file_open(child, names[i], O_RDONLY);

                g_assert_cmpint(proof_of(fd, &pid), ==, 0);
                g_assert_cmpint(pid, ==, child);
                g_assert_cmpint(proof_for(fd, child), ==, 0);
        }
        child_end(child);
}

static void test_of_ourselves(void) {
        _cleanup_close_ int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
        pid_t pid;

        g_assert_cmpint(proof_of(fd, &pid), ==, 0);
        g_assert_cmpint(pid, ==, getpid());
}

static void test_of_another_process(void) {
        pid_t child = child_start(NULL, NULL), other = child_start(NULL, NULL);
        _cleanup_close_ int fd = file_open(other, "maps", O_RDONLY);

        g_assert_cmpint(proof_for(fd, child), ==, REFUSAL_BAD_DESCRIPTOR);
        child_end(child);
        child_end(other);
}

/* stat(2) and O_PATH take no right to the process. */
static void test_o_path(void) {
        pid_t child = child_start(NULL, NULL), pid;
        _cleanup_close_ int fd = file_open(child, "maps", O_PATH);

        g_assert_cmpint(proof_of(fd, &pid), ==, REFUSAL_BAD_DESCRIPTOR);
        g_assert_cmpint(proof_for(fd, child), ==, REFUSAL_BAD_DESCRIPTOR);
        child_end(child);
}

/* What the kernel opens to everybody. */
static void test_other_files_of_procfs(void) {
        static const char *const names[] = { ".", "status", "stat", "cmdline", "task", "ns" };
        pid_t child = child_start(NULL, NULL), pid;

        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
                _cleanup_close_ int fd = file_open(child, names[i], O_RDONLY);

                g_assert_cmpint(proof_of(fd, &pid), ==, REFUSAL_BAD_DESCRIPTOR);
                g_assert_cmpint(proof_for(fd, child), ==, REFUSAL_BAD_DESCRIPTOR);
        }
        child_end(child);
}

static void test_a_threads_file(void) {
        Target s = target_new();
        g_autofree char *name = NULL;
        pid_t pid;

        target_add_thread(&s, 0, 1);
        name = g_strdup_printf("task/%d/maps", (int) s.tids[1]);
        {
                _cleanup_close_ int fd = file_open(s.pid, name, O_RDONLY);

                g_assert_cmpint(proof_of(fd, &pid), ==, REFUSAL_BAD_DESCRIPTOR);
                g_assert_cmpint(proof_for(fd, s.pid), ==, REFUSAL_BAD_DESCRIPTOR);
        }
        target_end(&s);
}

static void test_other_files(void) {
        int fds[7] = { -1, -1, -1, -1, -1, -1, -1 };
        pid_t pid;

        fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        fds[1] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fds[2] = pidfd_open(getpid(), 0);
        g_assert_cmpint(pipe(fds + 3), ==, 0);
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds + 5), ==, 0);
        for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
                g_assert_cmpint(proof_of(fds[i], &pid), ==, REFUSAL_BAD_DESCRIPTOR);
                close_fd(fds[i]);
        }
}

static void test_ended(void) {
        pid_t child = child_start(NULL, NULL), pid;
        _cleanup_close_ int fd = file_open(child, "maps", O_RDONLY);

        child_end(child);
        g_assert_cmpint(proof_of(fd, &pid), ==, REFUSAL_NO_SUCH_PROCESS);
}

static void *kill_in_thread(void *userdata) {
        child_end(*(const pid_t *) userdata);
        return NULL;
}

static void test_ends_while_it_is_checked(void) {
        for (int i = 0; i < 300; i++) {
                pid_t child = child_start(NULL, NULL);
                _cleanup_close_ int fd = file_open(child, "maps", O_RDONLY), pidfd = -1;
                pthread_t thread;
                Refusal why;
                int r;

                g_assert_cmpint(process_open(child, &pidfd, NULL), ==, 0);
                g_assert_cmpint(pthread_create(&thread, NULL, kill_in_thread, &child), ==, 0);
                do
                        r = proof_check(fd, HOST, pidfd, &why);
                while (r == 0);
                g_assert_cmpint(r, ==, REFUSAL_NO_SUCH_PROCESS);
                g_assert_cmpint(pthread_join(thread, NULL), ==, 0);
        }
}

static void test_reused_number(void) {
        Target first = target_new(), second;
        _cleanup_close_ int fd = file_open(first.pid, "maps", O_RDONLY);
        pid_t pid;

        target_kill(&first);
        if (target_start_as(&second, first.pid)) {
                g_assert_cmpint(proof_of(fd, &pid), ==, REFUSAL_BAD_DESCRIPTOR);
                g_assert_cmpint(proof_for(fd, second.pid), ==, REFUSAL_BAD_DESCRIPTOR);
                target_end(&second);
        } else
                g_test_skip("needs root to choose the number of a process");
        target_close(&first);
}

/* Older kernels check nothing for a thread without memory. */
static void test_first_thread_ended(void) {
        Target s = target_new();
        _cleanup_close_ int fd = file_open(s.pid, "maps", O_RDONLY);
        pid_t pid;

        target_add_thread(&s, 0, 1);
        g_assert_cmpint(proof_of(fd, &pid), ==, 0);
        target_end_thread(&s, 0);
        g_assert_cmpint(proof_of(fd, &pid), ==, REFUSAL_BAD_DESCRIPTOR);
        target_end(&s);
}

/* ---- in a mount namespace ---- */

static bool write_file(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text);
}

/* As its root; numbers are the same as outside. */
static bool enter_namespace(int flags) {
        g_autofree char *uids = g_strdup_printf("0 %u 1", (unsigned) getuid());
        g_autofree char *gids = g_strdup_printf("0 %u 1", (unsigned) getgid());

        if (unshare(CLONE_NEWUSER | CLONE_NEWNS | flags) < 0)
                return false;
        return write_file("/proc/self/setgroups", "deny") &&
               write_file("/proc/self/uid_map", uids) && write_file("/proc/self/gid_map", gids) &&
               mount("none", "/tmp", "tmpfs", 0, NULL) == 0;
}

/* Runs f in a child; it makes what it needs below /tmp. */
static void run_in_namespace(int flags, int (*f)(void)) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                if (!enter_namespace(flags))
                        _exit(77);
                if (flags & CLONE_NEWPID && (pid = fork()) != 0) {
                        (void) waitpid(pid, &status, 0);
                        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
                }
                _exit(f());
        }
        g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                g_test_skip("this user may not make namespaces");
        else
                g_assert_cmpint(status, ==, 0);
}

static int look_at_another_procfs(void) {
        _cleanup_close_ int fd = -1;
        pid_t pid;

        if (mkdir("/tmp/proc", 0755) < 0 || mount("proc", "/tmp/proc", "proc", 0, NULL) < 0)
                return 1;
        fd = open("/tmp/proc/self/maps", O_RDONLY | O_CLOEXEC);
        g_assert_cmpint(fd, >=, 0);
        g_assert_cmpint(proof_of(fd, &pid), ==, REFUSAL_BAD_DESCRIPTOR);
        return 0;
}

static void test_another_procfs(void) {
        run_in_namespace(CLONE_NEWPID, look_at_another_procfs);
}

/* The path of a mount says another process's number than the file is of. */
static int look_at_a_path_that_lies(void) {
        pid_t mine = child_start(NULL, NULL), other = child_start(NULL, NULL), pid;
        g_autofree char *source = g_strdup_printf("/proc/%d/maps", (int) mine),
                        *directory = g_strdup_printf("/tmp/%d", (int) other),
                        *lie = g_strdup_printf("%s/maps", directory);
        _cleanup_close_ int fd = -1;

        if (mkdir(directory, 0755) < 0 || mknod(lie, S_IFREG | 0644, 0) < 0 ||
            mount(source, lie, NULL, MS_BIND, NULL) < 0)
                return 1;
        fd = open(lie, O_RDONLY | O_CLOEXEC);
        g_assert_cmpint(fd, >=, 0);
        g_assert_cmpint(proof_of(fd, &pid), ==, REFUSAL_BAD_DESCRIPTOR);
        g_assert_cmpint(proof_for(fd, other), ==, REFUSAL_BAD_DESCRIPTOR);
        g_assert_cmpint(proof_for(fd, mine), ==, 0);
        child_end(mine);
        child_end(other);
        return 0;
}

static void test_a_path_that_lies(void) {
        run_in_namespace(0, look_at_a_path_that_lies);
}

int main(int argc, char **argv) {
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/proof/maps-auxv-and-environ-prove", test_files_that_prove);
        g_test_add_func("/proof/of-ourselves", test_of_ourselves);
        g_test_add_func("/proof/of-another-process-is-none", test_of_another_process);
        g_test_add_func("/proof/what-everybody-may-open-is-none/o-path", test_o_path);
        g_test_add_func("/proof/what-everybody-may-open-is-none/procfs",
                        test_other_files_of_procfs);
        g_test_add_func("/proof/a-threads-file-is-none", test_a_threads_file);
        g_test_add_func("/proof/other-files-are-none", test_other_files);
        g_test_add_func("/proof/another-procfs-is-none", test_another_procfs);
        g_test_add_func("/proof/the-path-is-not-believed", test_a_path_that_lies);
        g_test_add_func("/proof/ends-with-its-process", test_ended);
        g_test_add_func("/proof/ends-with-its-process/while-it-is-checked",
                        test_ends_while_it_is_checked);
        g_test_add_func("/proof/is-none-of-the-number's-next-process", test_reused_number);
        g_test_add_func("/proof/needs-memory-of-the-first-thread", test_first_thread_ended);
        return g_test_run();
}

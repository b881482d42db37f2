/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program with a profiler of its own that knows nothing of perfalloc:
 *
 *         forking TYPE CONFIG
 *
 * Threads open events of themselves, with groups and inheritance, while another thread forks
 * children that do the same, and all get a timer's signals, which interrupt system calls that wait.
 * Each event must be opened by the first call, and count.
 */

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, OPENS = 100, CHILDREN = 30, SIGNALS = 50, TICK_USEC = 1000 };

static struct perf_event_attr event = { .size = sizeof(event),
                                        .exclude_kernel = 1,
                                        .exclude_hv = 1 };
static atomic_uint n_signals, n_failed;

static void on_signal(int signo) {
        n_signals++;
}

static void fail(const char *what) {
        (void) fprintf(stderr, "%s: %s\n", what, strerror(errno));
        n_failed++;
}

static int event_open(int group, bool inherit) {
        struct perf_event_attr attr = event;
        int fd;

        attr.inherit = inherit;
        fd = (int) syscall(SYS_perf_event_open, &attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0)
                fail("perf_event_open");
        return fd;
}

/* Instructions, and a page fault. */
static void work(void) {
        char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        for (volatile int i = 0; i < 1000; i++)
                ;
        if (page == MAP_FAILED)
                return;
        *(volatile char *) page = 1;
        (void) munmap(page, 4096);
}

static void check_counted(int fd) {
        uint64_t value = 0;

        if (read(fd, &value, sizeof(value)) != sizeof(value) || value == 0)
                fail("an event that was opened has not counted");
}

static void pair_count(bool inherit) {
        int leader = event_open(-1, inherit), sibling = event_open(leader, inherit);

        work();
        if (leader >= 0 && sibling >= 0) {
                check_counted(leader);
                check_counted(sibling);
        }
        close(sibling);
        close(leader);
}

static void *open_many(void *arg) {
        for (int i = 0; i < OPENS || n_signals < SIGNALS; i++)
                pair_count(i % 2);
        return NULL;
}

static _Noreturn void child_run(void) {
        n_failed = 0;
        pair_count(false);
        _exit(n_failed > 0);
}

static void *fork_many(void *arg) {
        for (int i = 0; i < CHILDREN; i++) {
                pid_t pid = fork();
                int status;

                if (pid == 0)
                        child_run();
                while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                        ;
                if (status != 0)
                        fail("a child");
        }
        return NULL;
}

static void signals_begin(void) {
        const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
        const struct itimerval tick = { .it_interval.tv_usec = TICK_USEC,
                                        .it_value.tv_usec = TICK_USEC };

        if (sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &tick, NULL) < 0)
                fail("signals");
}

/* The kernel would rather have the first thread handle a signal. */
static void signals_leave(void) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGALRM);
        (void) pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char *argv[]) {
        pthread_t threads[THREADS + 1];

        if (argc != 3)
                return EXIT_FAILURE;
        event.type = (uint32_t) atoi(argv[1]);
        event.config = (uint64_t) atoi(argv[2]);
        signals_begin();
        for (int i = 0; i <= THREADS; i++)
                if (pthread_create(&threads[i], NULL, i < THREADS ? open_many : fork_many, NULL))
                        return EXIT_FAILURE;
        signals_leave();
        for (int i = 0; i <= THREADS; i++)
                (void) pthread_join(threads[i], NULL);
        return n_failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

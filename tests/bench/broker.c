/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a program pays under the broker. Run by tests/bench/fast.sh as an ordinary user, with and
 * without it:
 *
 *         bench-broker ours|theirs
 *
 * says how long perf_event_open(2) takes on one CPU, and a loop of other system calls: of the
 * shortest one, and of those that a program makes that reads files.
 */

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "bench.h"

enum { OPENS = 2000, ROUNDS = 20, CALLS = 20000, FILES = 5000 };

static void cpu_choose(void) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(0, &set);
        check_errno(sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static void opens(const char *side) {
        /* the first event of its type patches the kernel's code */
        int first = event_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0, 0, 0);

        for (unsigned i = 0; i < trials(OPENS); i++) {
                uint64_t start = clock_nsec(CLOCK_MONOTONIC);
                int fd = event_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0, 0, 0);

                sample("broker-open", side, usec_since(start));
                close_fd(fd);
        }
        close_fd(first);
}

static void calls(const char *side) {
        uint64_t start = clock_nsec(CLOCK_MONOTONIC);

        for (int i = 0; i < CALLS; i++)
                (void) syscall(SYS_getppid);
        sample("broker-call", side, usec_since(start));
}

static void files(const char *side) {
        static char data[4096];
        uint64_t start = clock_nsec(CLOCK_MONOTONIC);
        struct stat st;

        for (int i = 0; i < FILES; i++) {
                int fd = check_errno(open("/etc/passwd", O_RDONLY | O_CLOEXEC), "/etc/passwd");

                check_errno(fstat(fd, &st), "fstat");
                check_errno((int) read(fd, data, sizeof(data)), "read");
                close_fd(fd);
        }
        sample("broker-calls", side, usec_since(start));
}

int main(int argc, char *argv[]) {
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc != 2) {
                (void) fprintf(stderr, "usage: see %s\n", __FILE__);
                return EXIT_FAILURE;
        }
        cpu_choose();
        opens(argv[1]);
        for (unsigned i = 0; i < trials(ROUNDS); i++) {
                calls(argv[1]);
                files(argv[1]);
        }
        return EXIT_SUCCESS;
}

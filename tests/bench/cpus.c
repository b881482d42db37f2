/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Holds of all, with six monitors on every CPU: from the call of Hold to the answer of Wait, by the
 * clock of a simulated machine (tests/sim/sim.h). Run by tests/bench/cpus.sh:
 *
 *         bench-cpus ROW ours|theirs
 */

#include <fcntl.h>
#include <sys/mman.h>

#include "bench.h"

#define MONITORS 6u
#define PMU      "cpu"
#define CLOCK    "/run/rig/sim-clock"

static const volatile int64_t *ahead_nsec;

static void clock_map(void) {
        int fd = check_errno(open(CLOCK, O_RDONLY | O_CLOEXEC), CLOCK);
        void *p = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);

        check_errno(p == MAP_FAILED ? -1 : 0, CLOCK);
        close_fd(fd);
        ahead_nsec = p;
}

static int64_t clock_now(void) {
        return (int64_t) clock_nsec(CLOCK_MONOTONIC) + *ahead_nsec;
}

int main(int argc, char *argv[]) {
        sd_bus_message *monitors;
        sd_bus *bus = bus_open(NULL);

        if (argc != 3)
                check(-EINVAL, "bench-cpus ROW ours|theirs");
        clock_map();
        monitors = monitors_open(bus, "instructions", MONITORS);
        for (unsigned i = 0; i < trials(20); i++) {
                uint64_t latency_usec;
                int64_t begun = clock_now();
                int lease;
                char *path = hold_take(bus, PMU, &lease, &latency_usec);

                sample(argv[1], argv[2], (double) (clock_now() - begun) / NSEC_PER_USEC);
                hold_release(bus, path);
                close_fd(lease);
                free(path);
        }
        counters_close(bus, monitors);
        sd_bus_flush_close_unref(bus);
        return EXIT_SUCCESS;
}

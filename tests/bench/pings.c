/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pings.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PINGS_MAX  (1u << 16)
#define PAUSE_USEC 200u

/* Shared with the process that pings: the service and the bus in turns. */
typedef struct Pings {
        volatile unsigned n;
        float usec[PINGS_MAX];
} Pings;

struct Pinging {
        uint64_t begin;
        unsigned n_before;
        pid_t pid;
        Pings *pings;
};

static const char *ping_side(unsigned i) {
        return i % 2 == 0 ? OURS : THEIRS;
}

static _Noreturn void pings_run(Pings *pings) {
        sd_bus *bus;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        check_errno(close_range(STDERR_FILENO + 1, ~0u, 0), "close_range"); /* the connections */
        bus = bus_open("bob");
        bus_ping(bus); /* the first one asks who we are */
        for (;;) {
                double usec = pings->n % 2 == 0 ? bus_ping_usec(bus) : bus_ask_usec(bus);

                pings->usec[pings->n % PINGS_MAX] = (float) usec;
                pings->n++;
                sleep_usec(PAUSE_USEC);
        }
}

static void pings_await(const Pings *pings, unsigned n) {
        while (pings->n == n)
                sleep_usec(USEC_PER_MSEC);
}

Pinging *pings_begin(void) {
        Pinging *p = calloc(1, sizeof(*p));

        check(p ? 0 : -ENOMEM, "pings");
        p->pings = mmap(NULL, sizeof(Pings), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                        0);
        check(p->pings == MAP_FAILED ? -errno : 0, "mmap");
        p->pid = fork();
        check_errno(p->pid, "fork");
        if (p->pid == 0)
                pings_run(p->pings);
        pings_await(p->pings, 0);
        p->n_before = p->pings->n;
        p->begin = clock_nsec(CLOCK_MONOTONIC);
        return p;
}

void pings_end(Pinging *p, const char *row) {
        double took = usec_since(p->begin), worst[2] = {};

        pings_await(p->pings, p->pings->n);
        check_errno(kill(p->pid, SIGKILL), "kill");
        check_errno(waitpid(p->pid, NULL, 0), "waitpid");
        for (unsigned i = p->n_before; i < MIN(p->pings->n, PINGS_MAX); i++) {
                worst[i % 2] = MAX(worst[i % 2], (double) p->pings->usec[i]);
                for (double usec = p->pings->usec[i]; usec > 0; usec -= 1000)
                        sample(row, ping_side(i), usec);
        }
        say(row, "note", "%.0f ms; the longest ping %.1f ms, of the bus %.1f ms", took / 1e3,
            worst[0] / 1e3, worst[1] / 1e3);
        check_errno(munmap(p->pings, sizeof(Pings)), "munmap");
        free(p);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Many holds and many clients. Run as root in tests/rig/fast by tests/bench/fast.sh. Rows:
 *
 * - holds-N: CPU time that the service needs for one more hold and its release, ours: among N
 *   others, theirs: among 10
 * - crowd-memory: ours: private memory of the service in bytes per counter, with 1,000 clients that
 *   have a lease and 4 counters each
 * - crowd-wait: a ReadCounters of 4: ours: of each of these clients, its median; theirs: of one
 *   client alone
 */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "bench.h"

#define HOLDS_MAX  10000u
#define N_CLIENTS  1000u
#define N_COUNTERS 4u
#define N_ROUNDS   11u
#define N_ALONE    2000u

/* ---- holds ---- */

static uint64_t cpu_nsec(pid_t pid) {
        clockid_t clock;

        check(-clock_getcpuclockid(pid, &clock), "CPU clock");
        return clock_nsec(clock);
}

static void hold_once(sd_bus *bus) {
        uint64_t latency;
        int lease;
        char *path = hold_take(bus, "software", &lease, &latency);

        hold_release(bus, path);
        close_fd(lease);
        free(path);
        bus_drain(bus);
}

static void hold_add(sd_bus *bus) {
        sd_bus_message *m = bus_message(bus, MANAGER, "HoldUnattended");

        check(sd_bus_message_append(m, "sta{sv}", "benchmark", (uint64_t) 0, 1, "pmus", "as", 1,
                                    "software"),
              "HoldUnattended");
        sd_bus_message_unref(bus_call(bus, m));
}

/* Of batches, because the clock is the whole process's. */
static void holds_measure(sd_bus *bus, pid_t service, const char *row, const char *side) {
        const unsigned batch = 20;

        for (unsigned i = trials(30); i > 0; i--) {
                uint64_t before = cpu_nsec(service);

                for (unsigned k = 0; k < batch; k++)
                        hold_once(bus);
                sample(row, side, (double) (cpu_nsec(service) - before) / 1e3 / batch);
        }
}

static void holds(sd_bus *bus) {
        pid_t service = bus_pid(bus, SERVICE);
        unsigned n = 0;

        for (; n < 10; n++)
                hold_add(bus);
        for (unsigned i = 0; i < 100; i++)
                hold_once(bus); /* ended ones are kept for a while, up to a limit */
        holds_measure(bus, service, "holds-1000", THEIRS);
        holds_measure(bus, service, "holds-10000", THEIRS);
        for (; n < 1000; n++)
                hold_add(bus);
        holds_measure(bus, service, "holds-1000", OURS);
        for (; n < HOLDS_MAX; n++)
                hold_add(bus);
        holds_measure(bus, service, "holds-10000", OURS);
}

/* ---- clients ---- */

/* A client and a sleeping process of its own that it counts: thousands of events on one process
 * slow its context switches. */
typedef struct Member {
        pid_t pid;
        sd_bus *bus;
        sd_bus_message *hold, *counters;
        double usec[N_ROUNDS];
} Member;

static uint64_t private_bytes(pid_t pid) {
        uint64_t sum = 0, kb;
        char path[64], line[256];
        FILE *f;

        (void) snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int) pid);
        f = fopen(path, "re");
        check_errno(f ? 0 : -1, path);
        while (fgets(line, sizeof(line), f))
                if (sscanf(line, "Private_Clean: %" SCNu64, &kb) == 1 ||
                    sscanf(line, "Private_Dirty: %" SCNu64, &kb) == 1)
                        sum += kb * 1024;
        (void) fclose(f);
        return sum;
}

static double read_usec(const Member *c) {
        sd_bus_message *m = bus_message(c->bus, MANAGER, "ReadCounters");
        uint64_t start;

        check(sd_bus_message_rewind(c->counters, true), "ReadCounters");
        check(sd_bus_message_copy(m, c->counters, true), "ReadCounters");
        start = clock_nsec(CLOCK_MONOTONIC);
        sd_bus_message_unref(bus_call(c->bus, m));
        return usec_since(start);
}

static void member_join(Member *c) {
        c->bus = bus_open(NULL);
        c->hold = bus_call(c->bus, hold_message(c->bus, "software"));
        c->counters = counters_open(c->bus, "page-faults", N_COUNTERS, c->pid);
}

static void member_fork(Member *c) {
        c->pid = fork();
        check_errno(c->pid, "fork");
        if (c->pid > 0)
                return;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) pause();
        _exit(EXIT_FAILURE);
}

static void member_leave(Member *c) {
        sd_bus_message_unref(c->hold);
        sd_bus_message_unref(c->counters);
        sd_bus_flush_close_unref(c->bus);
}

static int compare_usec(const void *a, const void *b) {
        const double *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static void crowd(sd_bus *bus) {
        static Member clients[N_CLIENTS];
        pid_t service = bus_pid(bus, SERVICE);
        uint64_t before;

        for (unsigned i = 0; i < N_CLIENTS; i++)
                member_fork(&clients[i]);
        member_join(&clients[0]);
        for (unsigned i = 0; i < N_ALONE; i++)
                sample("crowd-wait", THEIRS, read_usec(&clients[0]));
        member_leave(&clients[0]);
        sleep_usec(USEC_PER_SEC);
        bus_ping(bus);
        before = private_bytes(service);
        for (unsigned i = 0; i < N_CLIENTS; i++)
                member_join(&clients[i]);
        bus_ping(bus);
        sample("crowd-memory", OURS,
               ((double) private_bytes(service) - (double) before) / (N_CLIENTS * N_COUNTERS));
        for (unsigned round = 0; round < N_ROUNDS; round++)
                for (unsigned i = 0; i < N_CLIENTS; i++)
                        clients[i].usec[round] = read_usec(&clients[i]);
        for (unsigned i = 0; i < N_CLIENTS; i++) {
                qsort(clients[i].usec, N_ROUNDS, sizeof(double), compare_usec);
                sample("crowd-wait", OURS, clients[i].usec[N_ROUNDS / 2]);
                member_leave(&clients[i]);
        }
}

int main(int argc, char *argv[]) {
        const struct rlimit files = { 16384, 16384 };
        sd_bus *bus;

        check_errno(setrlimit(RLIMIT_NOFILE, &files), "RLIMIT_NOFILE");
        bus = bus_open(NULL);
        if (argc > 1 && strcmp(argv[1], "holds") == 0)
                holds(bus);
        else
                crowd(bus);
        sd_bus_flush_close_unref(bus);
        return EXIT_SUCCESS;
}

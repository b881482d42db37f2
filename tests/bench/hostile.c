/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What one hostile user (hostile-loads.h) costs the others. Run as root in tests/rig/fast:
 *
 *         bench-hostile [ROUNDS [LOAD...]]
 *
 * prints how long a hold of carol's takes, from the call to the answer of Wait, while alice does
 * nothing, then each load, then all that has limits at once ("limits"), then all ("all").
 * $HOSTILE_SEC is for how long alice goes on before carol is measured.
 *
 *         bench-hostile pings [LOAD...]
 *
 * prints samples: row hostile-LOAD is the time of a ping meanwhile (pings.h).
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hostile-loads.h"
#include "pings.h"

#define ROUNDS     200
#define PING_SEC   5
#define SECOND_CPU "pmus", "as", 1, "breakpoint", "cpus", "s", "1"
#define LOADS_MAX  32

static bool is_wanted(char *names[], const char *name) {
        bool wanted = !*names;

        for (; *names && !wanted; names++)
                wanted = strcmp(*names, name) == 0;
        return wanted;
}

/* ---- carol's holds ---- */

typedef struct Times {
        uint64_t median, p95, most;
} Times;

static int compare(const void *a, const void *b) {
        const double *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static double hold_once(sd_bus *bus) {
        sd_bus_message *m = bus_message(bus, MANAGER, "Hold"), *reply;
        uint64_t begin = clock_nsec(CLOCK_MONOTONIC);
        const char *path;
        double took;

        check(sd_bus_message_append(m, "sa{sv}", "hers", 2, SECOND_CPU), "Hold");
        reply = bus_call(bus, m);
        check(sd_bus_message_read(reply, "oh", &path, NULL), "Hold");
        sd_bus_message_unref(
                bus_call(bus, bus_message(bus, SERVICE, path, PERFALLOC_HOLD_INTERFACE, "Wait")));
        took = usec_since(begin);
        hold_release(bus, path);
        sd_bus_message_unref(reply);
        return took;
}

static Times carol_measure(unsigned rounds) {
        _cleanup_free_ double *times = calloc(rounds, sizeof(double));
        uint64_t begin = clock_nsec(CLOCK_MONOTONIC);
        sd_bus *bus = bus_open("carol");
        unsigned n = 0;

        check(times ? 0 : -ENOMEM, "measure");
        (void) hold_once(bus);
        while (n < rounds && (n < 5 || usec_since(begin) < 15e6)) {
                times[n++] = hold_once(bus);
                sleep_usec(USEC_PER_MSEC + (uint64_t) rand() % USEC_PER_MSEC);
        }
        sd_bus_flush_close_unref(bus);
        qsort(times, n, sizeof(double), compare);
        return (Times){ (uint64_t) times[n / 2], (uint64_t) times[n * 95 / 100],
                        (uint64_t) times[n - 1] };
}

static void row(const char *name, Times t, Times idle) {
        printf("%-12s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 "   x%.1f\n", name, t.median, t.p95,
               t.most, (double) t.median / (double) MAX(idle.median, UINT64_C(1)));
        (void) fflush(stdout);
}

/* All of those kinds at once; NULL: the one load. */
static void measure(const char *name, const HostileLoad *one, HostileKind first, unsigned rounds,
                    Times idle) {
        const char *sec = getenv("HOSTILE_SEC");
        pid_t pids[LOADS_MAX];
        size_t n = 0;

        for (const HostileLoad *l = hostile_loads; l->name; l++)
                if (one ? l == one : l->kind >= first && l->kind <= HOSTILE_AT_LIMIT)
                        pids[n++] = hostile_start(l);
        sleep_usec(sec ? (uint64_t) atoi(sec) * USEC_PER_SEC : 0);
        row(name, carol_measure(rounds), idle);
        hostile_stop(pids, n);
}

static void measure_all(unsigned rounds, char *names[]) {
        Times idle = carol_measure(rounds);

        printf("%-12s %8s %8s %8s   of the unloaded median (us)\n", "load", "median", "p95",
               "most");
        row("none", idle, idle);
        for (const HostileLoad *l = hostile_loads; l->name; l++)
                if (is_wanted(names, l->name))
                        measure(l->name, l, l->kind, rounds, idle);
        if (is_wanted(names, "limits"))
                measure("limits", NULL, HOSTILE_AT_LIMIT, rounds, idle);
        if (is_wanted(names, "all"))
                measure("all", NULL, HOSTILE_GREED, rounds, idle);
}

/* ---- pings ---- */

static void ping_all(char *names[]) {
        char name[64];

        for (const HostileLoad *l = hostile_loads; l->name; l++) {
                pid_t pid;
                Pinging *p;

                if (!is_wanted(names, l->name))
                        continue;
                (void) snprintf(name, sizeof(name), "hostile-%s", l->name);
                pid = hostile_start(l);
                p = pings_begin();
                sleep_usec(trials(PING_SEC * 10) * USEC_PER_SEC / 10);
                pings_end(p, name);
                hostile_stop(&pid, 1);
        }
}

int main(int argc, char *argv[]) {
        char *none[] = { NULL };

        if (argc > 1 && strcmp(argv[1], "pings") == 0)
                ping_all(argv + 2);
        else
                measure_all(argc > 1 ? MAX((unsigned) atoi(argv[1]), 5u) : ROUNDS,
                            argc > 2 ? argv + 2 : none);
        return EXIT_SUCCESS;
}

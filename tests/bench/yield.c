/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The cost of yielding and resuming inside the service, beside the bare calls on the same
 * descriptors. Run in tests/rig/fast. Rows:
 *
 * - yield-N: ours: LatencyUSec with N monitor descriptors; theirs: as many bare disables (or
 *   closes)
 * - resume-N: ours: from the call of Release until the last monitor counts again, as its events
 *   tell; theirs: as many bare enables (or opens) and an empty call
 * - yield-probed: ours: LatencyUSec with breakpoints; theirs: closing them, and opening and closing
 *   them once more, as the probe does
 *
 * The table makes resume-growth of them: resume-1024 against resume-64.
 */

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "bench.h"

#define EVENTS_MAX 2048u

#define RESUME_TRIES 100u

static sd_bus *bus;
static unsigned n_cpus;
static int fds[EVENTS_MAX];

static double gate_all(size_t n, unsigned long request) {
        uint64_t start = clock_nsec(CLOCK_MONOTONIC);

        for (size_t i = 0; i < n; i++)
                check_errno(ioctl(fds[i], request, 0), "ioctl");
        return usec_since(start);
}

static void bare_gate(const char *yield, const char *resume, size_t n) {
        sample(yield, THEIRS, gate_all(n, PERF_EVENT_IOC_DISABLE));
        sample(resume, THEIRS, gate_all(n, PERF_EVENT_IOC_ENABLE) + bus_ping_usec(bus));
}

/* While the monitors have yielded: the slots are free. */
static void bare_breakpoints(const char *yield, const char *resume, size_t n) {
        static uint64_t watched[16];
        int *own = calloc(n, sizeof(int));
        uint64_t start = clock_nsec(CLOCK_MONOTONIC);
        double usec, close_usec;

        check(own ? 0 : -ENOMEM, "breakpoints");
        for (size_t i = 0; i < n; i++)
                own[i] = event_open(PERF_TYPE_BREAKPOINT, 0, (uintptr_t) &watched[i / n_cpus], -1,
                                    (int) (i % n_cpus));
        usec = usec_since(start);
        start = clock_nsec(CLOCK_MONOTONIC);
        events_close(own, n);
        close_usec = usec_since(start);
        sample(yield, THEIRS, close_usec);
        sample("yield-probed", THEIRS, close_usec + usec + close_usec);
        sample(resume, THEIRS, usec + bus_ping_usec(bus));
        free(own);
}

/* Many resume in slices, the last of them after Release was answered. */
static double resume_seen(Watch *w, const char *path) {
        uint64_t start = clock_nsec(CLOCK_MONOTONIC_RAW), last;
        unsigned tries = 0;

        hold_release(bus, path);
        while ((last = watch_last_on(w)) == 0 && tries++ < RESUME_TRIES)
                sleep_usec(10 * USEC_PER_MSEC);
        check(last > 0 ? 0 : -ETIME, "a monitor does not count after Release");
        return (double) (last - start) / 1e3;
}

static void trial(const char *pmu, const char *yield, const char *resume, size_t n) {
        bool closes = strcmp(pmu, "breakpoint") == 0;
        uint64_t latency, start;
        char *path;
        int lease;
        Watch w;

        if (!closes)
                bare_gate(yield, resume, n);
        watch_init(&w, fds, closes ? 0 : n);
        path = hold_take(bus, pmu, &lease, &latency);
        sample(yield, OURS, (double) latency);
        if (closes)
                sample("yield-probed", OURS, (double) latency);
        check(watch_is_off(&w) ? 0 : -EBUSY, "a monitor counts during a hold");
        (void) watch_last_off(&w);
        if (closes) {
                bare_breakpoints(yield, resume, n);
                start = clock_nsec(CLOCK_MONOTONIC);
                hold_release(bus, path);
                sample(resume, OURS, usec_since(start));
        } else
                sample(resume, OURS, resume_seen(&w, path));
        watch_done(&w);
        free(path);
        close_fd(lease);
        bus_drain(bus);
}

static void size_measure(const char *pmu, const char *event, const char *name, unsigned monitors,
                         unsigned n_trials) {
        bool closes = strcmp(pmu, "breakpoint") == 0;
        sd_bus_message *counters = monitors_open(bus, event, monitors);
        size_t n = monitors * n_cpus;
        char yield[64], resume[64];

        (void) snprintf(yield, sizeof(yield), "yield-%s", name);
        (void) snprintf(resume, sizeof(resume), "resume-%s", name);
        if (!closes)
                n = events_take(bus_pid(bus, SERVICE), fds, EVENTS_MAX);
        check(n == monitors * n_cpus ? 0 : -ERANGE, "the service has other events open than ours");
        for (unsigned i = 0; i < n_trials; i++)
                trial(pmu, yield, resume, n);
        if (n_cpus * monitors != (unsigned) atoi(name) && !closes)
                say(yield, "note", "%zu descriptors", n);
        /* copies would keep the events open */
        if (!closes)
                events_close(fds, n);
        counters_close(bus, counters);
        bus_drain(bus);
}

int main(void) {
        n_cpus = (unsigned) sysconf(_SC_NPROCESSORS_ONLN);
        bus = bus_open("root");
        size_measure("software", "context-switches", "6", MAX(6 / n_cpus, 1u), trials(200));
        size_measure("software", "context-switches", "64", MAX(64 / n_cpus, 1u), trials(100));
        size_measure("software", "context-switches", "1024", MAX(1024 / n_cpus, 1u), trials(30));
        size_measure("breakpoint", "breakpoint", "breakpoints", 4, trials(100));
        sd_bus_unref(bus);
        return EXIT_SUCCESS;
}

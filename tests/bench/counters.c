/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * OpenCounters, reading and OpenEvent by a user, who runs this in tests/rig/fast
 * (tests/bench/fast.sh). Rows:
 *
 * - open-counters: ours: OpenCounters of 1,000 events in one call; theirs: as many bare openings,
 *   of events that count from the start on a sleeping process, as the caller does, on the CPU of
 *   the opener
 * - open-far: theirs: the same from another CPU, where the service may run; starting each event is
 *   an interrupt then, for the service as well
 * - read-counters: ours: ReadCounters of these; theirs: bare reads, and an empty call
 * - read-mapped: ours: Refresh of a sampler that maps their readings, and a copy of these
 * - event-first: ours: the first OpenEvent of a connection; theirs: the first PerfEventOpen of one
 *   to sysprofd
 * - event-later: the same, for the second call and later ones
 *
 *         bench-counters [events] [sysprofd]
 *
 * "events": only the last two.
 */

#include <linux/perf_event.h>
#include <perfalloc/sample.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "bench.h"

#define N_COUNTERS 1000u
#define N_LATER    10u
#define PROFILER   "org.gnome.Sysprof3", "/org/gnome/Sysprof3", "org.gnome.Sysprof3.Service"

/* ---- counters ---- */

static void stay_on(unsigned cpu) {
        cpu_set_t only;

        CPU_ZERO(&only);
        CPU_SET(cpu, &only);
        check_errno(sched_setaffinity(0, sizeof(only), &only), "sched_setaffinity");
}

static void bare_open(const char *row, unsigned cpu, pid_t pid, int *fds) {
        cpu_set_t all;
        uint64_t start;

        check_errno(sched_getaffinity(0, sizeof(all), &all), "sched_getaffinity");
        stay_on(cpu);
        start = clock_nsec(CLOCK_MONOTONIC);
        for (size_t i = 0; i < N_COUNTERS; i++)
                fds[i] = event_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, pid, -1);
        sample(row, THEIRS, usec_since(start));
        check_errno(sched_setaffinity(0, sizeof(all), &all), "sched_setaffinity");
}

static void bare_trial(sd_bus *bus, pid_t pid) {
        unsigned last = (unsigned) sysconf(_SC_NPROCESSORS_ONLN) - 1;
        static int fds[N_COUNTERS];
        uint64_t start, data[3];
        double usec;

        if (last > 0) {
                bare_open("open-far", last, pid, fds);
                events_close(fds, N_COUNTERS);
        }
        bare_open("open-counters", 0, pid, fds);
        start = clock_nsec(CLOCK_MONOTONIC);
        for (size_t i = 0; i < N_COUNTERS; i++)
                check_errno((int) read(fds[i], data, sizeof(data)), "read");
        usec = usec_since(start);
        events_close(fds, N_COUNTERS);
        usec += bus_ping_usec(bus);
        sample("read-counters", THEIRS, usec);
        sample("read-mapped", THEIRS, usec);
}

static void mapped_trial(sd_bus *bus, sd_bus_message *counters) {
        static union {
                struct perfalloc_sample sample;
                uint8_t bytes[PERFALLOC_SAMPLE_SIZE(N_COUNTERS)];
        } record;
        const size_t size = PERFALLOC_MAP_SIZE(sizeof(record));
        sd_bus_message *m = bus_message(bus, MANAGER, "CreateSampler"), *sampler;
        struct perfalloc_map *map;
        const char *path;
        uint64_t start;
        int fd;

        check(sd_bus_message_rewind(counters, true), "counters");
        check(sd_bus_message_copy(m, counters, true), "CreateSampler");
        check(sd_bus_message_append(m, "ta{sv}", UINT64_C(0), 1, "map", "b", 1), "CreateSampler");
        sampler = bus_call(bus, m);
        check(sd_bus_message_read(sampler, "oh", &path, &fd), "CreateSampler");
        map = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
        check(map == MAP_FAILED ? -errno : 0, "mmap");
        while (!perfalloc_map_read(map, &record.sample, sizeof(record)))
                sleep_usec(USEC_PER_MSEC); /* its tick */
        m = bus_message(bus, SERVICE, path, PERFALLOC_SAMPLER_INTERFACE, "Refresh");
        start = clock_nsec(CLOCK_MONOTONIC);
        sd_bus_message_unref(bus_call(bus, m));
        check(perfalloc_map_read(map, &record.sample, sizeof(record)) ? 0 : -EBUSY, "Refresh");
        sample("read-mapped", OURS, usec_since(start));
        check_errno(munmap(map, size), "munmap");
        sd_bus_message_unref(bus_call(
                bus, bus_message(bus, SERVICE, path, PERFALLOC_SAMPLER_INTERFACE, "Close")));
        sd_bus_message_unref(sampler);
}

static void counters_trial(sd_bus *bus) {
        uint64_t start = clock_nsec(CLOCK_MONOTONIC);
        sd_bus_message *counters, *m;

        counters = counters_open(bus, "page-faults:u", N_COUNTERS, 0);
        sample("open-counters", OURS, usec_since(start));
        m = bus_message(bus, MANAGER, "ReadCounters");
        check(sd_bus_message_copy(m, counters, true), "ReadCounters");
        start = clock_nsec(CLOCK_MONOTONIC);
        sd_bus_message_unref(bus_call(bus, m));
        sample("read-counters", OURS, usec_since(start));
        mapped_trial(bus, counters);
        counters_close(bus, counters);
        bus_drain(bus);
}

static void counters_measure(void) {
        sd_bus *bus = bus_open(NULL);
        pid_t child = fork();

        check_errno(child, "fork");
        if (child == 0) {
                stay_on(0);
                (void) pause();
                _exit(EXIT_FAILURE);
        }
        /* polkit's answer is kept for the connection, for a while */
        counters_close(bus, counters_open(bus, "page-faults:u", 1, 0));
        for (unsigned i = trials(30); i > 0; i--) {
                bare_trial(bus, child);
                counters_trial(bus);
        }
        (void) kill(child, SIGKILL);
        (void) waitpid(child, NULL, 0);
        sd_bus_flush_close_unref(bus);
}

/* ---- events ---- */

static void our_event(sd_bus *bus, const char *row) {
        const struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                              .size = sizeof(attr),
                                              .config = PERF_COUNT_SW_TASK_CLOCK,
                                              .exclude_kernel = true,
                                              .exclude_hv = true };
        sd_bus_message *m = bus_message(bus, MANAGER, "OpenEvent");
        uint64_t start;

        check(sd_bus_message_append_array(m, 'y', &attr, sizeof(attr)), "OpenEvent");
        check(sd_bus_message_append(m, "iita{sv}", 0, -1, (uint64_t) 0, 0), "OpenEvent");
        start = clock_nsec(CLOCK_MONOTONIC);
        sd_bus_message_unref(bus_call(bus, m));
        sample(row, OURS, usec_since(start));
}

static void their_event(sd_bus *bus, const char *row) {
        sd_bus_message *m = bus_message(bus, PROFILER, "PerfEventOpen");
        /* it requires a leader, and libsystemd cannot send none */
        int leader = event_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0, getpid(), -1);
        uint64_t start;

        check(sd_bus_message_append(m, "a{sv}iiht", 3, "type", "u", PERF_TYPE_SOFTWARE, "config",
                                    "t", (uint64_t) PERF_COUNT_SW_TASK_CLOCK, "sample_period", "t",
                                    (uint64_t) NSEC_PER_SEC, (int) getpid(), -1, leader,
                                    (uint64_t) 0),
              "PerfEventOpen");
        start = clock_nsec(CLOCK_MONOTONIC);
        sd_bus_message_unref(bus_call(bus, m));
        sample(row, THEIRS, usec_since(start));
        close_fd(leader);
}

static void events_trial(void (*open)(sd_bus *bus, const char *row)) {
        sd_bus *bus = bus_open(NULL);

        open(bus, "event-first");
        for (unsigned i = 0; i < N_LATER; i++)
                open(bus, "event-later");
        sd_bus_flush_close_unref(bus);
}

static bool has_word(char *words[], const char *word) {
        while (*words && strcmp(*words, word) != 0)
                words++;
        return *words;
}

int main(int argc, char *argv[]) {
        bool theirs = has_word(argv, "sysprofd");

        if (!has_word(argv, "events"))
                counters_measure();
        /* The first event on all tasks makes the kernel patch itself for 10 ms. */
        (void) event_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0, 0, -1);
        for (unsigned i = trials(100); i > 0; i--) {
                events_trial(our_event);
                if (theirs)
                        events_trial(their_event);
        }
        return EXIT_SUCCESS;
}

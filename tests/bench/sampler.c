/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What sampling costs: a sampler of 16 counters at 1 kHz, and beside it a bare loop that waits for
 * a timerfd and reads the very same descriptors. Run in tests/rig/fast:
 *
 *         tests/rig/fast --build build build/tests/bench/bench-sampler [SECONDS]
 *
 * Prints what became of each tick and the CPU time of both. Fails when a tick was early or not
 * accounted for.
 */

#include <dirent.h>
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <perfalloc/sample.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <time.h>

#include "core/util.h"

#define N_COUNTERS    16
#define INTERVAL_USEC 1000u
#define MANAGER       PERFALLOC_BUS_NAME, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE

static const char *const events[] = { "task-clock", "page-faults", "context-switches",
                                      "cpu-migrations" };

static void check(int r, const char *what) {
        if (r >= 0)
                return;
        (void) fprintf(stderr, "%s: %s\n", what, strerror(-r));
        exit(EXIT_FAILURE);
}

static void check_errno(int r, const char *what) {
        check(r < 0 ? -errno : 0, what);
}

static uint64_t nsec_of(clockid_t clock) {
        struct timespec t;

        check_errno(clock_gettime(clock, &t), "clock");
        return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

static uint64_t cpu_nsec(pid_t pid) {
        clockid_t clock;

        check(-clock_getcpuclockid(pid, &clock), "CPU clock");
        return nsec_of(clock);
}

static sd_bus_message *call(sd_bus *bus, sd_bus_message *m) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply;
        int r = sd_bus_call(bus, m, UINT64_MAX, &error, &reply);

        check(r, error.message ?: sd_bus_message_get_member(m));
        return reply;
}

/* Opens the counters and samples them: returns the stream and when tick 0 is due. */
static int sampler_create(sd_bus *bus, uint64_t *ret_start_usec) {
        sd_bus_message *m, *reply, *counters;
        const char *path;
        int fd, r;

        check(sd_bus_message_new_method_call(bus, &m, MANAGER, "OpenCounters"), "message");
        r = sd_bus_message_open_container(m, 'a', "s");
        for (size_t i = 0; i < N_COUNTERS && r >= 0; i++)
                r = sd_bus_message_append_basic(m, 's', events[i % ELEMENTSOF(events)]);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r >= 0)
                r = sd_bus_message_append(m, "a{sv}", 0);
        check(r, "message");
        counters = call(bus, m);

        check(sd_bus_message_new_method_call(bus, &m, MANAGER, "CreateSampler"), "message");
        check(sd_bus_message_copy(m, counters, true), "message");
        check(sd_bus_message_append(m, "ta{sv}", (uint64_t) INTERVAL_USEC, 0), "message");
        reply = call(bus, m);
        check(sd_bus_message_read(reply, "oh", &path, &fd), "reply");
        check(sd_bus_get_property_trivial(bus, PERFALLOC_BUS_NAME, path,
                                          PERFALLOC_SAMPLER_INTERFACE, "StartUSec", NULL, 't',
                                          ret_start_usec),
              "StartUSec");
        fd = dup(fd);
        check_errno(fd, "dup");
        return fd;
}

static pid_t service_pid(sd_bus *bus) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply;
        uint32_t pid;

        check(sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                 "org.freedesktop.DBus", "GetConnectionUnixProcessID", &error,
                                 &reply, "s", PERFALLOC_BUS_NAME),
              "pid");
        check(sd_bus_message_read(reply, "u", &pid), "pid");
        return (pid_t) pid;
}

/* The service's own descriptors of the counters. */
static size_t descriptors_take(pid_t pid, int fds[N_COUNTERS]) {
        char directory[64], link[512], target[64];
        const struct dirent *entry;
        int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        size_t n = 0;
        DIR *dir;

        check_errno(pidfd, "pidfd_open");
        (void) snprintf(directory, sizeof(directory), "/proc/%d/fd", (int) pid);
        dir = opendir(directory);
        check_errno(dir ? 0 : -1, directory);
        while (n < N_COUNTERS && (entry = readdir(dir))) {
                ssize_t size;

                (void) snprintf(link, sizeof(link), "%s/%s", directory, entry->d_name);
                size = readlink(link, target, sizeof(target) - 1);
                target[MAX(size, 0)] = '\0';
                if (strcmp(target, "anon_inode:[perf_event]") != 0)
                        continue;
                fds[n] = (int) syscall(SYS_pidfd_getfd, pidfd, atoi(entry->d_name), 0);
                check_errno(fds[n++], "pidfd_getfd");
        }
        (void) closedir(dir);
        return n;
}

static void bare_loop(const int fds[], size_t n) {
        struct itimerspec t = { .it_value.tv_nsec = INTERVAL_USEC * 1000,
                                .it_interval.tv_nsec = INTERVAL_USEC * 1000 };
        int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
        uint64_t ticks, data[3];

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        check_errno(timerfd_settime(timer, 0, &t, NULL), "timerfd");
        while (read(timer, &ticks, sizeof(ticks)) == sizeof(ticks)) {
                (void) nsec_of(CLOCK_BOOTTIME);
                for (size_t i = 0; i < n; i++)
                        if (read(fds[i], data, sizeof(data)) < 0)
                                _exit(EXIT_FAILURE);
        }
}

typedef struct SendLog {
        uint64_t records, missed, early, unaccounted, late_most_nsec, late_sum_nsec;
} SendLog;

static void tally(SendLog *t, const struct perfalloc_sample *s, uint64_t *next,
                  uint64_t start_usec) {
        uint64_t due = (start_usec + s->tick * INTERVAL_USEC) * NSEC_PER_USEC;

        t->records++;
        t->missed += s->missed;
        t->unaccounted += s->tick != *next + s->missed;
        *next = s->tick + 1;
        if (s->boottime_nsec < due) {
                t->early++;
                return;
        }
        t->late_sum_nsec += s->boottime_nsec - due;
        t->late_most_nsec = MAX(t->late_most_nsec, s->boottime_nsec - due);
}

int main(int argc, char *argv[]) {
        unsigned seconds = argc > 1 ? (unsigned) atoi(argv[1]) : 10;
        uint64_t start_usec, end, next = 0, service_nsec, bare_nsec;
        int stream, fds[N_COUNTERS];
        SendLog t = {};
        pid_t service, bare;
        sd_bus *bus;
        size_t n;

        check(sd_bus_open_system(&bus), "bus");
        stream = sampler_create(bus, &start_usec);
        service = service_pid(bus);
        n = descriptors_take(service, fds);
        bare = fork();
        check_errno(bare, "fork");
        if (bare == 0) {
                bare_loop(fds, n);
                _exit(EXIT_FAILURE);
        }
        end = nsec_of(CLOCK_BOOTTIME) + seconds * NSEC_PER_SEC;
        service_nsec = cpu_nsec(service);
        bare_nsec = cpu_nsec(bare);
        while (nsec_of(CLOCK_BOOTTIME) < end) {
                union {
                        struct perfalloc_sample sample;
                        char space[PERFALLOC_SAMPLE_SIZE(N_COUNTERS)];
                } record;
                ssize_t size = recv(stream, &record, sizeof(record), 0);

                check_errno((int) size, "recv");
                if (size == 0)
                        check(-EPIPE, "the sampler");
                tally(&t, &record.sample, &next, start_usec);
        }
        service_nsec = cpu_nsec(service) - service_nsec;
        bare_nsec = cpu_nsec(bare) - bare_nsec;
        (void) kill(bare, SIGKILL);
        (void) waitpid(bare, NULL, 0);

        printf("%u s, %zu counters: %" PRIu64 " ticks, %" PRIu64 " missed, %" PRIu64
               " early, %" PRIu64 " not accounted for\n",
               seconds, n, t.records, t.missed, t.early, t.unaccounted);
        printf("late: %.1f us on average, %.1f at most\n",
               (double) t.late_sum_nsec / (double) MAX(t.records, 1u) / 1000,
               (double) t.late_most_nsec / 1000);
        printf("CPU a tick: service %.2f us, bare loop %.2f us, ratio %.2f\n",
               (double) service_nsec / seconds / 1e6, (double) bare_nsec / seconds / 1e6,
               (double) service_nsec / (double) bare_nsec);
        return t.early > 0 || t.unaccounted > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

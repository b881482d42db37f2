/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bench.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

void check(int r, const char *what) {
        if (r >= 0)
                return;
        (void) fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(-r));
        exit(EXIT_FAILURE);
}

int check_errno(int r, const char *what) {
        check(r < 0 ? -errno : 0, what);
        return r;
}

uint64_t clock_nsec(clockid_t clock) {
        struct timespec t;

        check_errno(clock_gettime(clock, &t), "clock_gettime");
        return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

double usec_since(uint64_t nsec) {
        return (double) (clock_nsec(CLOCK_MONOTONIC) - nsec) / 1e3;
}

void sleep_usec(uint64_t usec) {
        const struct timespec t = { .tv_sec = (time_t) (usec / USEC_PER_SEC),
                                    .tv_nsec = (long) (usec % USEC_PER_SEC * NSEC_PER_USEC) };

        (void) nanosleep(&t, NULL);
}

unsigned trials(unsigned n) {
        return getenv("BENCH_QUICK") ? MAX(n / 10, 3u) : n;
}

/* Rows of the same programs under a load have names of their own. */
static const char *prefix(void) {
        return getenv("BENCH_PREFIX") ?: "";
}

void sample(const char *row, const char *side, double value) {
        printf("%s%s\t%s\t%.3f\n", prefix(), row, side, value);
}

void say(const char *row, const char *kind, const char *format, ...) {
        va_list ap;

        printf("%s%s\t%s\t", prefix(), row, kind);
        va_start(ap, format);
        (void) vprintf(format, ap);
        va_end(ap);
        (void) putchar('\n');
}

/* ---- the bus ---- */

/* The bus asks the kernel who we are once, when the connection is made. */
static void become(const struct passwd *pw) {
        if (pw->pw_uid == 0)
                return;
        check_errno(initgroups(pw->pw_name, pw->pw_gid), "initgroups");
        check_errno(setegid(pw->pw_gid), "setegid");
        check_errno(seteuid(pw->pw_uid), "seteuid");
}

static void become_root(void) {
        check_errno(seteuid(0), "seteuid");
        check_errno(setegid(0), "setegid");
        check_errno(setgroups(0, NULL), "setgroups");
        /* otherwise our files in /proc would be root's, and no user could count us */
        (void) prctl(PR_SET_DUMPABLE, 1);
}

sd_bus *bus_open(const char *user) {
        const struct passwd *pw = user ? getpwnam(user) : NULL;
        const char *name;
        sd_bus *bus;
        int r;

        check(pw || !user ? 0 : -ENOENT, user);
        if (pw)
                become(pw);
        r = sd_bus_open_system(&bus);
        if (r >= 0) /* the credentials are sent with the first messages */
                r = sd_bus_get_unique_name(bus, &name);
        if (pw)
                become_root();
        check(r, "the system bus");
        return bus;
}

sd_bus_message *bus_message(sd_bus *bus, const char *destination, const char *path,
                            const char *interface, const char *member) {
        sd_bus_message *m;

        check(sd_bus_message_new_method_call(bus, &m, destination, path, interface, member),
              member);
        return m;
}

sd_bus_message *bus_call(sd_bus *bus, sd_bus_message *m) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply;
        int r = sd_bus_call(bus, m, UINT64_MAX, &error, &reply);

        if (r < 0)
                (void) fprintf(stderr, "%s: %s\n", sd_bus_message_get_member(m),
                               error.message ?: "no reply");
        check(r, sd_bus_message_get_member(m));
        sd_bus_message_unref(m);
        return reply;
}

void bus_ping(sd_bus *bus) {
        sd_bus_message_unref(bus_call(bus, bus_message(bus, SERVICE, PERFALLOC_OBJECT_PATH,
                                                       "org.freedesktop.DBus.Peer", "Ping")));
}

double bus_ping_usec(sd_bus *bus) {
        uint64_t start = clock_nsec(CLOCK_MONOTONIC);

        bus_ping(bus);
        return usec_since(start);
}

/* It takes a Ping from root only. */
double bus_ask_usec(sd_bus *bus) {
        uint64_t start = clock_nsec(CLOCK_MONOTONIC);

        sd_bus_message_unref(bus_call(bus, bus_message(bus, "org.freedesktop.DBus", "/",
                                                       "org.freedesktop.DBus", "GetId")));
        return usec_since(start);
}

void bus_drain(sd_bus *bus) {
        int r;

        while ((r = sd_bus_process(bus, NULL)) > 0)
                ;
        check(r, "the bus");
}

pid_t bus_pid(sd_bus *bus, const char *name) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply;
        uint32_t pid;

        check(sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                 "org.freedesktop.DBus", "GetConnectionUnixProcessID", &error,
                                 &reply, "s", name),
              name);
        check(sd_bus_message_read(reply, "u", &pid), name);
        sd_bus_message_unref(reply);
        return (pid_t) pid;
}

/* ---- holds and counters ---- */

sd_bus_message *hold_message(sd_bus *bus, const char *pmu) {
        sd_bus_message *m = bus_message(bus, MANAGER, "Hold");

        check(sd_bus_message_append(m, "sa{sv}", "benchmark", 1, "pmus", "as", 1, pmu), "Hold");
        return m;
}

char *hold_take(sd_bus *bus, const char *pmu, int *ret_lease, uint64_t *ret_latency_usec) {
        sd_bus_message *hold = bus_call(bus, hold_message(bus, pmu)), *granted;
        const char *path;
        int lease, confirmed;
        char *copy;

        check(sd_bus_message_read(hold, "oh", &path, &lease), "Hold");
        granted = bus_call(bus, bus_message(bus, SERVICE, path, PERFALLOC_HOLD_INTERFACE, "Wait"));
        check(sd_bus_message_read(granted, "bt", &confirmed, ret_latency_usec), "Wait");
        copy = strdup(path);
        check(copy ? 0 : -ENOMEM, "Hold");
        *ret_lease = check_errno(dup(lease), "dup");
        sd_bus_message_unref(granted);
        sd_bus_message_unref(hold);
        return copy;
}

void hold_release(sd_bus *bus, const char *path) {
        sd_bus_message_unref(bus_call(
                bus, bus_message(bus, SERVICE, path, PERFALLOC_HOLD_INTERFACE, "Release")));
}

static sd_bus_message *open_begin(sd_bus *bus) {
        sd_bus_message *m = bus_message(bus, MANAGER, "OpenCounters");

        check(sd_bus_message_open_container(m, 'a', "s"), "OpenCounters");
        return m;
}

static void append_process(sd_bus_message *m, pid_t pid) {
        _cleanup_close_ int procfd = -1;
        char path[sizeof("/proc/-2147483648/maps")];

        (void) snprintf(path, sizeof(path), "/proc/%d/maps", (int) pid);
        procfd = check_errno(open(path, O_RDONLY | O_CLOEXEC), path);
        check(sd_bus_message_append(m, "a{sv}", 1, "procfd", "h", procfd), "procfd");
}

sd_bus_message *counters_open(sd_bus *bus, const char *event, unsigned n, pid_t pid) {
        sd_bus_message *m = open_begin(bus);

        while (n-- > 0)
                check(sd_bus_message_append(m, "s", event), event);
        check(sd_bus_message_close_container(m), "OpenCounters");
        if (pid > 0)
                append_process(m, pid);
        else
                check(sd_bus_message_append(m, "a{sv}", 0), "OpenCounters");
        return bus_call(bus, m);
}

sd_bus_message *monitors_open(sd_bus *bus, const char *event, unsigned n) {
        static uint64_t watched[16];
        sd_bus_message *m = open_begin(bus);
        bool breakpoints = strcmp(event, "breakpoint") == 0;
        char text[64];

        for (unsigned i = 0; i < n; i++) {
                (void) snprintf(text, sizeof(text), "mem:%#lx/8:w",
                                (unsigned long) &watched[i % ELEMENTSOF(watched)]);
                check(sd_bus_message_append(m, "s", breakpoints ? text : event), event);
        }
        check(sd_bus_message_close_container(m), "OpenCounters");
        check(sd_bus_message_append(m, "a{sv}", 2, "scope", "s", "cpu", "role", "s", "monitor"),
              "OpenCounters");
        return bus_call(bus, m);
}

void counters_close(sd_bus *bus, sd_bus_message *counters) {
        const char *path;

        check(sd_bus_message_rewind(counters, true), "rewind");
        check(sd_bus_message_enter_container(counters, 'a', "o"), "counters");
        while (sd_bus_message_read(counters, "o", &path) > 0)
                sd_bus_message_unref(
                        bus_call(bus, bus_message(bus, SERVICE, path, PERFALLOC_COUNTER_INTERFACE,
                                                  "Close")));
        sd_bus_message_unref(counters);
}

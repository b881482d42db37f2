/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Makes the service go through its hot paths, for tests/bench/instructions/compare, which runs it
 * under callgrind: a dump of the counts is made whenever HasSamplers is called. Prints for each
 * dump, in order, what was done since the one before, and how often.
 *
 * Nothing here depends on the machine: there is one CPU, events are software events, and late
 * signals are waited for. Nor does it need pidfd_open(2) of processes, which valgrind does not
 * know.
 */

#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>

#include "core/util.h"

#define N_ENDED    64 /* ended holds that can be read; from then on each new one displaces another */
#define N_HOLDS    40
#define N_MONITORS 6
#define N_AMONG    1000
#define N_READS    100
#define N_COUNTERS 64
#define N_TICKS    50

#define MANAGER PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE

static sd_bus *bus;
static unsigned n_added, n_changed; /* signals of counters */

static void check(int r, const char *what) {
        if (r >= 0)
                return;
        (void) fprintf(stderr, "%s: %s\n", what, strerror(-r));
        exit(EXIT_FAILURE);
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *path = sd_bus_message_get_path(m);

        if (sd_bus_message_is_signal(m, NULL, "PropertiesChanged"))
                n_changed += path && strstr(path, "/counter/") != NULL;
        else if (sd_bus_message_is_signal(m, NULL, "InterfacesAdded") &&
                 sd_bus_message_read(m, "o", &path) > 0)
                n_added += strstr(path, "/counter/") != NULL;
        return 0;
}

static void await(const unsigned *n, unsigned wanted) {
        while (*n < wanted) {
                int r = sd_bus_process(bus, NULL);

                check(r, "bus");
                if (r == 0)
                        check(sd_bus_wait(bus, UINT64_MAX), "bus");
        }
}

static sd_bus_message *message(const char *path, const char *interface, const char *member) {
        sd_bus_message *m;

        check(sd_bus_message_new_method_call(bus, &m, PERFALLOC_BUS_NAME, path, interface, member),
              member);
        return m;
}

static sd_bus_message *call(sd_bus_message *m) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply;
        int r = sd_bus_call(bus, m, UINT64_MAX, &error, &reply);

        check(r, error.message ?: sd_bus_message_get_member(m));
        sd_bus_message_unref(m);
        return reply;
}

static void do_call(const char *path, const char *interface, const char *member) {
        sd_bus_message_unref(call(message(path, interface, member)));
}

static void mark(const char *name, unsigned times) {
        do_call(MANAGER, "HasSamplers");
        printf("%s\t%u\n", name, times);
}

/* The answer to OpenCounters, when all have been announced. */
static sd_bus_message *open_counters(unsigned n, bool monitor) {
        sd_bus_message *m = message(MANAGER, "OpenCounters");
        unsigned wanted = n_added + n;

        check(sd_bus_message_open_container(m, 'a', "s"), "events");
        for (unsigned i = 0; i < n; i++)
                check(sd_bus_message_append_basic(m, 's', "page-faults:u"), "event");
        check(sd_bus_message_close_container(m), "events");
        check(sd_bus_message_append(m, "a{sv}", 3, "scope", "s", "cpu", "cpus", "s", "0", "role",
                                    "s", monitor ? "monitor" : "foreground"),
              "options");
        m = call(m);
        await(&n_added, wanted);
        return m;
}

static void hold(unsigned n_monitors) {
        sd_bus_message *m = message(MANAGER, "Hold");
        unsigned changed = n_changed;
        const char *path;

        check(sd_bus_message_append(m, "sa{sv}", "to be counted", 2, "pmus", "as", 1, "software",
                                    "cpus", "s", "0"),
              "options");
        m = call(m);
        check(sd_bus_message_read(m, "oh", &path, NULL), "hold");
        do_call(path, PERFALLOC_HOLD_INTERFACE, "Wait");
        await(&n_changed, changed + n_monitors);
        do_call(path, PERFALLOC_HOLD_INTERFACE, "Release");
        await(&n_changed, changed + 2 * n_monitors);
        sd_bus_message_unref(m);
}

static void holds(void) {
        sd_bus_message_unref(open_counters(N_MONITORS, true));
        for (int i = 0; i < N_ENDED; i++)
                hold(N_MONITORS);
        mark("set up", 0);
        for (int i = 0; i < N_HOLDS; i++)
                hold(N_MONITORS);
        mark("hold-6-monitors", N_HOLDS);
}

/* The same when many others have been granted: the monitors have nothing to do then. */
static void hold_among(void) {
        for (int i = 0; i < N_AMONG; i++) {
                sd_bus_message *m = message(MANAGER, "HoldUnattended");

                check(sd_bus_message_append(m, "sta{sv}", "to be many", UINT64_C(0), 2, "pmus",
                                            "as", 1, "software", "cpus", "s", "0"),
                      "options");
                sd_bus_message_unref(call(m));
        }
        mark("set up", 0);
        for (int i = 0; i < N_HOLDS; i++)
                hold(0);
        mark("hold-among", N_HOLDS);
}

static sd_bus_message *counters(void) {
        sd_bus_message *reply;

        sd_bus_message_unref(open_counters(1, false));
        mark("set up", 0);
        reply = open_counters(N_COUNTERS, false);
        mark("open-counters", N_COUNTERS);
        return reply;
}

static void reads(sd_bus_message *all) {
        const char *path;

        check(sd_bus_message_enter_container(all, 'a', "o"), "counters");
        check(sd_bus_message_read_basic(all, 'o', &path), "counter");
        for (int i = 0; i < N_READS; i++)
                do_call(path, PERFALLOC_COUNTER_INTERFACE, "Read");
        mark("read", N_READS);
        for (int i = 0; i < N_READS / 10; i++) {
                sd_bus_message *m = message(MANAGER, "ReadCounters");

                check(sd_bus_message_rewind(all, true), "counters");
                check(sd_bus_message_copy(m, all, true), "counters");
                sd_bus_message_unref(call(m));
        }
        mark("read-counters", N_READS / 10 * N_COUNTERS);
}

static void ticks(sd_bus_message *all) {
        sd_bus_message *m = message(MANAGER, "CreateSampler");
        char record[16384];
        int stream;

        check(sd_bus_message_rewind(all, true), "counters");
        check(sd_bus_message_copy(m, all, true), "counters");
        check(sd_bus_message_append(m, "ta{sv}", UINT64_C(5000), 0), "interval");
        m = call(m);
        check(sd_bus_message_read(m, "oh", NULL, &stream), "stream");
        stream = dup(stream);
        check(stream < 0 ? -errno : 0, "stream");
        for (int i = 0; i <= N_TICKS; i++) {
                if (i == 1)
                        mark("set up", 0);
                check(recv(stream, record, sizeof(record), 0) <= 0 ? -EPIPE : 0, "record");
        }
        mark("sampler-tick", N_TICKS);
        sd_bus_message_unref(m);
        close_fd(stream);
}

static void refreshes(sd_bus_message *all) {
        sd_bus_message *m = message(MANAGER, "CreateSampler");
        const char *path;

        check(sd_bus_message_rewind(all, true), "counters");
        check(sd_bus_message_copy(m, all, true), "counters");
        check(sd_bus_message_append(m, "ta{sv}", 3600 * USEC_PER_SEC, 1, "map", "b", 1), "map");
        m = call(m);
        check(sd_bus_message_read(m, "oh", &path, NULL), "map");
        mark("set up", 0);
        for (int i = 0; i < N_READS; i++)
                do_call(path, PERFALLOC_SAMPLER_INTERFACE, "Refresh");
        mark("refresh", N_READS * N_COUNTERS);
        sd_bus_message_unref(m);
}

int main(void) {
        sd_bus_message *all;

        check(sd_bus_open_system(&bus), "bus");
        check(sd_bus_match_signal(bus, NULL, PERFALLOC_BUS_NAME, NULL, NULL, NULL, on_signal, NULL),
              "signals");
        all = counters();
        reads(all);
        ticks(all);
        refreshes(all);
        holds(); /* last: 10 s later they are forgotten, which is work too */
        hold_among();
        sd_bus_message_unref(all);
        sd_bus_flush_close_unref(bus);
        return EXIT_SUCCESS;
}

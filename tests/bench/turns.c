/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How long others wait while the service does much for one client. Run as root in tests/rig/fast
 * by tests/bench/fast.sh:
 *
 *         bench-turns [LOAD...]
 *
 * Rows: the time of a ping (pings.h):
 *
 * - turn-open: OpenCounters of 4,096 events on one CPU
 * - turn-objects: GetManagedObjects with these
 * - turn-close: their client leaves
 * - turn-attach: AttachProcess of a group of 17 events, to 900 processes one after the other
 * - turn-leave: the client of 4,096 monitors leaves while a hold is granted
 * - turn-detach: the client of the 900 processes leaves
 * - turn-yield, turn-resume: 4,096 monitors yield to a hold, and resume
 *
 * And restart-N, ours: from SIGKILL to the first answer of a service with N counters of a CPU;
 * restart-processes, restart-monitors, restart-held: with 4,096 of a process, monitors, monitors
 * that have yielded.
 */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "pings.h"

#define N_COUNTERS 4096u
#define N_AT_ONCE  1024u /* the limit of a call */
#define N_TARGETS  900u
#define N_EVENTS   17u

/* ---- loads ---- */

static sd_bus_message *counters_message(sd_bus *bus, const char *event, unsigned n) {
        sd_bus_message *m = bus_message(bus, MANAGER, "OpenCounters");

        check(sd_bus_message_open_container(m, 'a', "s"), "OpenCounters");
        while (n-- > 0)
                check(sd_bus_message_append_basic(m, 's', event), "OpenCounters");
        check(sd_bus_message_close_container(m), "OpenCounters");
        return m;
}

static char *counter_next(sd_bus_message *reply) {
        const char *path;
        int r = sd_bus_message_read_basic(reply, 'o', &path);

        check(r, "OpenCounters");
        return r > 0 ? strdup(path) : NULL;
}

/* Counters of a client, which are announced, started and stopped in this order. */
typedef struct Ends {
        char *first, *last;
} Ends;

static void ends_done(Ends *e) {
        free(e->first);
        free(e->last);
}

static void ends_add(Ends *e, sd_bus_message *reply) {
        char *path;

        check(sd_bus_message_enter_container(reply, 'a', "o"), "OpenCounters");
        while ((path = counter_next(reply))) {
                if (!e->first) {
                        e->first = path;
                        continue;
                }
                free(e->last);
                e->last = path;
        }
        sd_bus_message_unref(reply);
}

static Ends cpu_counters_open(sd_bus *bus, const char *role) {
        Ends ends = {};

        for (unsigned n = 0; n < N_COUNTERS; n += N_AT_ONCE) {
                sd_bus_message *m = counters_message(bus, "context-switches", N_AT_ONCE);

                check(sd_bus_message_append(m, "a{sv}", 3, "scope", "s", "cpu", "cpus", "s", "0",
                                            "role", "s", role),
                      "OpenCounters");
                ends_add(&ends, bus_call(bus, m));
        }
        return ends;
}

static bool counter_is(sd_bus *bus, const char *path, const char *wanted) {
        char *state = NULL;
        bool is;

        check(sd_bus_get_property_string(bus, SERVICE, path, PERFALLOC_COUNTER_INTERFACE, "State",
                                         NULL, &state),
              path);
        is = strcmp(state, wanted) == 0;
        free(state);
        return is;
}

static bool counter_exists(sd_bus *bus, const char *path) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        char *event = NULL;
        int r = sd_bus_get_property_string(bus, SERVICE, path, PERFALLOC_COUNTER_INTERFACE, "Event",
                                           &error, &event);

        free(event);
        check(r < 0 && !sd_bus_error_has_name(&error, SD_BUS_ERROR_UNKNOWN_OBJECT) ? r : 0, path);
        return r >= 0;
}

/* Until the counters of a client that has left are gone: others' are counted in the service. */
static void await_no_counters(sd_bus *bus) {
        for (bool any = true; any;) {
                sd_bus_message *reply =
                        bus_call(bus, bus_message(bus, SERVICE, PERFALLOC_OBJECT_PATH,
                                                  "org.freedesktop.DBus.ObjectManager",
                                                  "GetManagedObjects"));

                any = false;
                check(sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}"), "objects");
                while (!any && sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}") > 0) {
                        const char *path;

                        check(sd_bus_message_read_basic(reply, 'o', &path), "objects");
                        any = strstr(path, "/counter/");
                        check(sd_bus_message_skip(reply, "a{sa{sv}}"), "objects");
                        check(sd_bus_message_exit_container(reply), "objects");
                }
                sd_bus_message_unref(reply);
        }
}

/* first is their oldest counter, which is closed last. */
static void leave(const char *row, sd_bus *leaving, const char *first) {
        sd_bus *bus = bus_open(NULL);
        Pinging *p = pings_begin();

        sd_bus_flush_close_unref(leaving);
        while (counter_exists(bus, first))
                sleep_usec(USEC_PER_MSEC);
        pings_end(p, row);
        await_no_counters(bus);
        sd_bus_flush_close_unref(bus);
}

static void load_one_client(void) {
        sd_bus *bus = bus_open(NULL), *other = bus_open(NULL);
        Pinging *p = pings_begin();
        Ends ends = cpu_counters_open(bus, "foreground");

        pings_end(p, "turn-open");

        p = pings_begin();
        for (unsigned i = 0; i < 3; i++)
                sd_bus_message_unref(
                        bus_call(other, bus_message(other, SERVICE, PERFALLOC_OBJECT_PATH,
                                                    "org.freedesktop.DBus.ObjectManager",
                                                    "GetManagedObjects")));
        pings_end(p, "turn-objects");
        sd_bus_flush_close_unref(other);
        leave("turn-close", bus, ends.first);
        ends_done(&ends);
}

static void load_leave(void) {
        sd_bus *bus = bus_open(NULL), *holder = bus_open(NULL);
        Ends ends = cpu_counters_open(bus, "monitor");
        uint64_t latency;
        int lease;
        char *path = hold_take(holder, "software", &lease, &latency);

        leave("turn-leave", bus, ends.first);
        ends_done(&ends);
        hold_release(holder, path);
        close_fd(lease);
        free(path);
        sd_bus_flush_close_unref(holder);
}

/* The turns of a hold: all monitors yield, and resume. */
static void load_held(void) {
        sd_bus *bus = bus_open(NULL), *holder = bus_open(NULL);
        Ends ends = cpu_counters_open(bus, "monitor");
        uint64_t latency;
        int lease;
        char *path;
        Pinging *p;

        for (unsigned i = 0; i < 5; i++) {
                p = pings_begin();
                path = hold_take(holder, "software", &lease, &latency);
                pings_end(p, "turn-yield");
                p = pings_begin();
                hold_release(holder, path);
                while (!counter_is(bus, ends.last, "counting"))
                        sleep_usec(USEC_PER_MSEC);
                pings_end(p, "turn-resume");
                close_fd(lease);
                free(path);
        }
        leave("turn-close", bus, ends.first);
        ends_done(&ends);
        sd_bus_flush_close_unref(holder);
}

/* ---- many processes ---- */

static void targets_fork(pid_t pids[]) {
        for (unsigned i = 0; i < N_TARGETS; i++) {
                pids[i] = fork();
                check_errno(pids[i], "fork");
                if (pids[i] == 0) {
                        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                        (void) close_range(STDERR_FILENO + 1, ~0u, 0);
                        for (;;)
                                (void) pause();
                }
        }
}

static void targets_kill(const pid_t pids[]) {
        for (unsigned i = 0; i < N_TARGETS; i++) {
                (void) kill(pids[i], SIGKILL);
                (void) waitpid(pids[i], NULL, 0);
        }
}

static int attached(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        check(-sd_bus_message_get_errno(m), "AttachProcess");
        --*(unsigned *) userdata;
        return 0;
}

static void attach_all(sd_bus *bus, const char *path, const pid_t pids[]) {
        unsigned n_left = N_TARGETS;

        for (unsigned i = 0; i < N_TARGETS; i++) {
                sd_bus_message *m = bus_message(bus, SERVICE, path, PERFALLOC_COUNTER_INTERFACE,
                                                "AttachProcess");

                check(sd_bus_message_append(m, "ua{sv}", (uint32_t) pids[i], 0), "AttachProcess");
                check(sd_bus_call_async(bus, NULL, m, attached, &n_left, UINT64_MAX),
                      "AttachProcess");
                sd_bus_message_unref(m);
                while (N_TARGETS - n_left + 100 < i + 1) {
                        check(sd_bus_wait(bus, UINT64_MAX), "the bus");
                        bus_drain(bus);
                }
        }
        while (n_left > 0) {
                check(sd_bus_wait(bus, UINT64_MAX), "the bus");
                bus_drain(bus);
        }
}

static void load_attach(void) {
        sd_bus *bus = bus_open(NULL);
        sd_bus_message *m = counters_message(bus, "context-switches", N_EVENTS);
        pid_t pids[N_TARGETS];
        Ends ends = {};
        Pinging *p;

        targets_fork(pids);
        check(sd_bus_message_append(m, "a{sv}", 3, "group", "b", 1, "attach", "b", 0, "start", "b",
                                    0),
              "group");
        ends_add(&ends, bus_call(bus, m));
        p = pings_begin();
        attach_all(bus, ends.first, pids);
        pings_end(p, "turn-attach");
        leave("turn-detach", bus, ends.first);
        ends_done(&ends);
        targets_kill(pids);
}

/* ---- a restart ---- */

/* The rig starts it again by itself: each activation would be processes more, which wait for that.
 */
static bool answers(sd_bus *bus) {
        sd_bus_message *m = bus_message(bus, SERVICE, PERFALLOC_OBJECT_PATH,
                                        "org.freedesktop.DBus.Peer", "Ping");
        int r;

        check(sd_bus_message_set_auto_start(m, false), "Ping");
        r = sd_bus_call(bus, m, 0, NULL, NULL);
        sd_bus_message_unref(m);
        return r >= 0;
}

static void restarts(const char *row, sd_bus *bus) {
        for (unsigned i = 0; i < trials(20); i++) {
                pid_t pid = bus_pid(bus, SERVICE);
                uint64_t begin = clock_nsec(CLOCK_MONOTONIC);

                check_errno(kill(pid, SIGKILL), "kill");
                while (!answers(bus))
                        sleep_usec(USEC_PER_MSEC);
                sample(row, OURS, usec_since(begin));
        }
}

/* ROLE "process": of this process. */
static void restart_with(const char *row, const char *role, unsigned n_clients, bool held) {
        sd_bus *bus = bus_open(NULL), *clients[2];
        char *path = NULL;
        int lease = -1;

        for (unsigned i = 0; i < n_clients; i++) {
                clients[i] = bus_open(NULL);
                if (strcmp(role, "process") == 0)
                        for (unsigned n = 0; n < N_COUNTERS; n += N_AT_ONCE)
                                sd_bus_message_unref(counters_open(clients[i], "context-switches",
                                                                   N_AT_ONCE, 0));
                else {
                        Ends ends = cpu_counters_open(clients[i], role);

                        ends_done(&ends);
                }
        }
        if (held)
                path = hold_take(bus, "software", &lease, &(uint64_t){ 0 });
        restarts(row, bus);
        if (held)
                hold_release(bus, path);
        free(path);
        close_fd(lease);
        for (unsigned i = 0; i < n_clients; i++)
                sd_bus_flush_close_unref(clients[i]);
        await_no_counters(bus);
        sd_bus_flush_close_unref(bus);
}

static void load_restart(void) {
        restart_with("restart-0", "foreground", 0, false);
        restart_with("restart-4096", "foreground", 1, false);
        restart_with("restart-8192", "foreground", 2, false);
}

static void load_restart_processes(void) {
        restart_with("restart-processes", "process", 1, false);
}

static void load_restart_monitors(void) {
        restart_with("restart-monitors", "monitor", 1, false);
        restart_with("restart-held", "monitor", 1, true);
}

static const struct {
        const char *name;
        void (*run)(void);
} loads[] = {
        { "client", load_one_client },
        { "leave", load_leave },
        { "attach", load_attach },
        { "held", load_held },
        { "restart", load_restart },
        { "restart-processes", load_restart_processes },
        { "restart-monitors", load_restart_monitors },
};

static bool is_wanted(char *words[], const char *name) {
        bool wanted = !*words;

        for (; *words && !wanted; words++)
                wanted = strcmp(*words, name) == 0;
        return wanted;
}

int main(int argc, char *argv[]) {
        for (size_t i = 0; i < ELEMENTSOF(loads); i++)
                if (is_wanted(argv + 1, loads[i].name))
                        loads[i].run();
        return EXIT_SUCCESS;
}

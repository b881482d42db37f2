/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What one hostile user costs the others: how long a hold of carol's takes, from the call to the
 * answer of Wait, while alice does nothing, then each of alice's worst things, then all that has
 * limits at once, then all. Run in tests/rig/fast:
 *
 *         tests/rig/fast --build build build/tests/bench/bench-hostile [ROUNDS [LOAD...]]
 *
 * $HOSTILE_SEC is for how long alice goes on before carol is measured.
 *
 * Prints, and never fails because something is slow. alice is at her limits in what has one: holds
 * queued, calls that wait, counters, samplers; the rest alice does as fast as possible.
 */

#include <grp.h>
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#include "core/util.h"

#define ROUNDS          200
#define CONNECTIONS_MAX 8
#define HOLDS           1023
#define WAITS           1000
#define WAITS_EACH      120 /* the bus lets one connection await 128 replies */
#define COUNTERS        4000
#define SAMPLERS        60
#define FIRST_CPU       "pmus", "as", 1, "breakpoint", "cpus", "s", "0"
#define SECOND_CPU      "pmus", "as", 1, "breakpoint", "cpus", "s", "1"
#define DESTINATION     PERFALLOC_BUS_NAME, PERFALLOC_OBJECT_PATH
#define MANAGER         DESTINATION, PERFALLOC_MANAGER_INTERFACE

static void check(int r, const char *what) {
        if (r >= 0)
                return;
        (void) fprintf(stderr, "%s: %s\n", what, strerror(-r));
        exit(EXIT_FAILURE);
}

static uint64_t usec_now(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

static sd_bus *bus_open(void) {
        sd_bus *bus;

        check(sd_bus_open_system(&bus), "no system bus");
        check(sd_bus_get_unique_name(bus, &(const char *){ NULL }), "no system bus");
        return bus;
}

static sd_bus_message *method_new(sd_bus *bus, const char *path, const char *interface,
                                  const char *member, const char *types, ...) {
        sd_bus_message *m;
        va_list ap;

        check(sd_bus_message_new_method_call(bus, &m, PERFALLOC_BUS_NAME, path, interface, member),
              member);
        va_start(ap, types);
        if (types)
                check(sd_bus_message_appendv(m, types, ap), member);
        va_end(ap);
        return m;
}

static sd_bus_message *call(sd_bus *bus, sd_bus_message *m) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply;
        int r = sd_bus_call(bus, m, UINT64_MAX, &error, &reply);

        if (r < 0) {
                (void) fprintf(stderr, "%s: %s\n", sd_bus_message_get_member(m),
                               error.message ?: strerror(-r));
                exit(EXIT_FAILURE);
        }
        sd_bus_message_unref(m);
        return reply;
}

static void become(const char *user) {
        const struct passwd *pw = getpwnam(user);

        if (!pw) {
                (void) fprintf(stderr, "there is no user %s: run this in tests/rig/fast\n", user);
                exit(EXIT_FAILURE);
        }
        if (initgroups(user, pw->pw_gid) < 0 || setgid(pw->pw_gid) < 0 || setuid(pw->pw_uid) < 0)
                check(-errno, user);
        (void) prctl(PR_SET_DUMPABLE, 1);
}

/* ---- flooding ---- */

typedef struct Flood {
        sd_bus *bus;
        sd_bus_message *(*next)(sd_bus *bus, void *userdata);
        void *userdata;
        unsigned in_flight;
} Flood;

static int flood_answered(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        ((Flood *) userdata)->in_flight--;
        return 0;
}

static void flood_send(Flood *f) {
        sd_bus_message *m = f->next(f->bus, f->userdata);

        check(sd_bus_call_async(f->bus, NULL, m, flood_answered, f, UINT64_MAX), "flood");
        sd_bus_message_unref(m);
        f->in_flight++;
}

/* Waits until one of them has something to do: alice is to cost calls, not a CPU. */
static void floods_wait(Flood *floods, unsigned n) {
        struct pollfd fds[CONNECTIONS_MAX];

        for (unsigned i = 0; i < n; i++)
                fds[i] = (struct pollfd){ .fd = sd_bus_get_fd(floods[i].bus),
                                          .events = (short) sd_bus_get_events(floods[i].bus) };
        (void) poll(fds, n, 1);
}

/* Keeps that many calls in flight on each of the connections, for ever. */
static void flood(unsigned n_connections, unsigned window,
                  sd_bus_message *(*next)(sd_bus *bus, void *userdata), void *userdata) {
        _cleanup_free_ Flood *floods = calloc(n_connections, sizeof(Flood));

        check(floods ? 0 : -ENOMEM, "flood");
        for (unsigned i = 0; i < n_connections; i++)
                floods[i] = (Flood){ bus_open(), next, userdata, 0 };
        for (;;) {
                for (unsigned i = 0; i < n_connections; i++) {
                        while (floods[i].in_flight < window)
                                flood_send(&floods[i]);
                        while (sd_bus_process(floods[i].bus, NULL) > 0)
                                ;
                }
                floods_wait(floods, n_connections);
        }
}

static void ready(int fd) {
        (void) !write(fd, "o", 1);
}

/* ---- alice's worst things ---- */

static char *hold_path(sd_bus *bus, uint64_t wait_usec, int exclusive) {
        sd_bus_message *reply =
                call(bus, method_new(bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                                     "HoldUnattended", "sta{sv}", "mine", (uint64_t) 0, 4,
                                     FIRST_CPU, "wait_usec", "t", wait_usec, "mode", "s",
                                     exclusive ? "exclusive" : "shared"));
        const char *path;
        char *copy;

        check(sd_bus_message_read(reply, "o", &path), "hold");
        copy = strdup(path);
        sd_bus_message_unref(reply);
        return copy;
}

/* Queues as many holds as allowed, and waits for the answers. */
static void play_holds(int fd) {
        sd_bus *bus = bus_open();
        char *path = NULL;

        for (unsigned i = 0; i < HOLDS; i++) {
                free(path);
                path = hold_path(bus, UINT64_C(1800000000), i == 0);
        }
        for (unsigned i = 0; i < WAITS; i++) {
                if (i % WAITS_EACH == 0)
                        bus = bus_open();
                check(sd_bus_call_method_async(bus, NULL, PERFALLOC_BUS_NAME, path,
                                               PERFALLOC_HOLD_INTERFACE, "Wait", NULL, NULL, NULL),
                      "Wait");
                check(sd_bus_flush(bus), "Wait");
        }
        ready(fd);
        for (;;)
                pause();
}

static sd_bus_message *next_checked(sd_bus *bus, void *userdata) {
        return method_new(bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "Hold", "sa{sv}",
                          "for a moment", 2, FIRST_CPU);
}

static void play_checks(int fd) {
        ready(fd);
        flood(2, 100, next_checked, NULL);
}

static void counters_open(sd_bus *bus, unsigned n, char **ret_path) {
        sd_bus_message *m = method_new(bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                                       "OpenCounters", NULL),
                       *reply;
        const char *path;

        check(sd_bus_message_open_container(m, 'a', "s"), "OpenCounters");
        for (unsigned i = 0; i < n; i++)
                check(sd_bus_message_append_basic(m, 's', "cpu-clock"), "OpenCounters");
        check(sd_bus_message_close_container(m), "OpenCounters");
        check(sd_bus_message_append(m, "a{sv}", 1, "scope", "s", "cpu"), "OpenCounters");
        reply = call(bus, m);
        check(sd_bus_message_enter_container(reply, 'a', "o"), "OpenCounters");
        check(sd_bus_message_read_basic(reply, 'o', &path), "OpenCounters");
        if (ret_path)
                *ret_path = strdup(path);
        sd_bus_message_unref(reply);
}

static sd_bus_message *next_opening(sd_bus *bus, void *userdata) {
        return method_new(bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "OpenCounters",
                          "asa{sv}", 2, "cpu-clock", "no-such-event", 1, "scope", "s", "cpu");
}

static void play_opens(int fd) {
        sd_bus *bus = bus_open();

        for (unsigned i = 0; i < COUNTERS; i += 100)
                counters_open(bus, 100, NULL);
        ready(fd);
        flood(2, 100, next_opening, NULL);
}

static void play_samplers(int fd) {
        sd_bus *bus = bus_open();

        for (unsigned i = 0; i < SAMPLERS; i++) {
                bool signals = i % 2;
                char *path;

                counters_open(bus, 1, &path);
                (void) call(bus, method_new(bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                                            "CreateSampler", "aota{sv}", 1, path,
                                            (uint64_t) (signals ? 10000 : 500), 1, "signal", "b",
                                            (int) signals));
                free(path);
        }
        ready(fd);
        for (;;)
                pause();
}

static sd_bus_message *next_list(sd_bus *bus, void *userdata) {
        return method_new(bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "ListUsers",
                          NULL);
}

static void play_lists(int fd) {
        ready(fd);
        flood(2, 100, next_list, NULL);
}

static sd_bus_message *next_probe(sd_bus *bus, void *userdata) {
        return method_new(bus, PERFALLOC_OBJECT_PATH "/pmu/breakpoint", PERFALLOC_PMU_INTERFACE,
                          "Probe", NULL);
}

static void play_probes(int fd) {
        ready(fd);
        flood(2, 100, next_probe, NULL);
}

static sd_bus_message *next_objects(sd_bus *bus, void *userdata) {
        return method_new(bus, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                          "GetManagedObjects", NULL);
}

/* Besides the samplers' own. */
static void play_counters(int fd) {
        sd_bus *bus = bus_open();

        for (unsigned i = 0; i + 200 <= COUNTERS; i += 100)
                counters_open(bus, 100, NULL);
        ready(fd);
        for (;;)
                pause();
}

static void play_objects(int fd) {
        sd_bus *bus = bus_open();

        for (unsigned i = 0; i < COUNTERS; i += 100)
                counters_open(bus, 100, NULL);
        ready(fd);
        flood(2, 4, next_objects, NULL);
}

static sd_bus_message *next_rubbish(sd_bus *bus, void *userdata) {
        return method_new(bus, PERFALLOC_OBJECT_PATH "/no/such/object", "no.such.Interface", "No",
                          "s", "rubbish");
}

static void play_rubbish(int fd) {
        ready(fd);
        flood(4, 100, next_rubbish, NULL);
}

static sd_bus_message *next_event(sd_bus *bus, void *userdata) {
        return method_new(bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "ListEvents",
                          "s", "*");
}

static void play_events(int fd) {
        ready(fd);
        flood(2, 50, next_event, NULL);
}

/* Small calls without a reply: only the bus's own memory limits them. */
static void play_flood(int fd) {
        sd_bus *bus = bus_open();

        ready(fd);
        for (;;) {
                sd_bus_message *m = method_new(bus, PERFALLOC_OBJECT_PATH,
                                               PERFALLOC_MANAGER_INTERFACE, "HasSamplers", NULL);

                check(sd_bus_message_set_expect_reply(m, false), "flood");
                check(sd_bus_send(bus, m, NULL), "flood");
                check(sd_bus_flush(bus), "flood");
                sd_bus_message_unref(m);
                while (sd_bus_process(bus, NULL) > 0)
                        ;
        }
}

/* As large as the bus allows. */
static void play_huge(int fd) {
        enum { SIZE = 28 * 1024 * 1024 };
        sd_bus *bus = bus_open();

        ready(fd);
        for (;;) {
                sd_bus_message *m = method_new(bus, PERFALLOC_OBJECT_PATH,
                                               PERFALLOC_MANAGER_INTERFACE, "HasSamplers", NULL);
                void *space;

                check(sd_bus_message_append_array_space(m, 'y', SIZE, &space), "huge");
                memset(space, 'x', SIZE);
                check(sd_bus_message_set_expect_reply(m, false), "huge");
                check(sd_bus_send(bus, m, NULL), "huge");
                check(sd_bus_flush(bus), "huge");
                sd_bus_message_unref(m);
                while (sd_bus_process(bus, NULL) > 0)
                        ;
        }
}

/* Large answers that are never read: they stay in the bus's memory, which charges the service for
 * them. */
static void play_unread(int fd) {
        sd_bus *bus = bus_open();

        for (unsigned i = 0; i < COUNTERS; i += 100)
                counters_open(bus, 100, NULL);
        for (unsigned i = 0; i < 100; i++)
                check(sd_bus_call_async(bus, NULL, next_objects(bus, NULL), NULL, NULL, UINT64_MAX),
                      "GetManagedObjects");
        check(sd_bus_flush(bus), "GetManagedObjects");
        ready(fd);
        for (;;)
                pause();
}

/* Descriptors that are never read: dbus-daemon stops reading from whoever has sent 64 of them. */
static void play_descriptors(int fd) {
        sd_bus *bus = bus_open();
        char *path;

        counters_open(bus, 1, &path);
        for (unsigned i = 0; i < 1000; i++) {
                sd_bus_message *m =
                        method_new(bus, path, PERFALLOC_COUNTER_INTERFACE, "GetFds", NULL);

                check(sd_bus_call_async(bus, NULL, m, NULL, NULL, UINT64_MAX), "GetFds");
                sd_bus_message_unref(m);
        }
        check(sd_bus_flush(bus), "GetFds");
        ready(fd);
        for (;;)
                pause();
}

/* Large signals that are never read. */
static void play_signals(int fd) {
        sd_bus *bus = bus_open();
        char *path;

        for (unsigned i = 0; i < SAMPLERS; i++) {
                sd_bus_message *m = method_new(bus, PERFALLOC_OBJECT_PATH,
                                               PERFALLOC_MANAGER_INTERFACE, "CreateSampler", NULL);

                check(sd_bus_message_open_container(m, 'a', "o"), "CreateSampler");
                for (unsigned j = 0; j < COUNTERS / SAMPLERS; j++) {
                        counters_open(bus, 1, &path);
                        check(sd_bus_message_append_basic(m, 'o', path), "CreateSampler");
                        free(path);
                }
                check(sd_bus_message_close_container(m), "CreateSampler");
                check(sd_bus_message_append(m, "ta{sv}", (uint64_t) 10000, 1, "signal", "b", 1),
                      "CreateSampler");
                (void) call(bus, m);
        }
        ready(fd);
        for (;;)
                pause();
}

/* Not about the service: the cost of the bus and the second CPU when a client calls the bus
 * itself. */
static sd_bus_message *next_elsewhere(sd_bus *bus, void *userdata) {
        sd_bus_message *m;

        check(sd_bus_message_new_method_call(bus, &m, "org.freedesktop.DBus",
                                             "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                             "GetId"),
              "GetId");
        return m;
}

static void play_elsewhere(int fd) {
        ready(fd);
        flood(4, 100, next_elsewhere, NULL);
}

/* ---- carol ---- */

static int compare(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static uint64_t hold_once(sd_bus *bus) {
        uint64_t begin = usec_now(), end;
        sd_bus_message *reply =
                call(bus, method_new(bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                                     "Hold", "sa{sv}", "hers", 2, SECOND_CPU));
        const char *path;

        check(sd_bus_message_read(reply, "oh", &path, NULL), "Hold");
        sd_bus_message_unref(
                call(bus, method_new(bus, path, PERFALLOC_HOLD_INTERFACE, "Wait", NULL)));
        end = usec_now();
        sd_bus_message_unref(
                call(bus, method_new(bus, path, PERFALLOC_HOLD_INTERFACE, "Release", NULL)));
        sd_bus_message_unref(reply);
        return end - begin;
}

typedef struct Times {
        uint64_t median, p95, most;
} Times;

static void carol_measure(unsigned rounds, Times *ret) {
        _cleanup_free_ uint64_t *times = calloc(rounds, sizeof(uint64_t));
        uint64_t until = usec_now() + 15 * USEC_PER_SEC;
        unsigned n = 0;
        sd_bus *bus;

        check(times ? 0 : -ENOMEM, "measure");
        become("carol");
        bus = bus_open();
        (void) hold_once(bus);
        while (n < rounds && (n < 5 || usec_now() < until)) {
                times[n++] = hold_once(bus);
                (void) nanosleep(&(struct timespec){ .tv_nsec = 1000000 + rand() % 1000000 }, NULL);
        }
        qsort(times, n, sizeof(uint64_t), compare);
        *ret = (Times){ times[n / 2], times[n * 95 / 100], times[n - 1] };
}

/* Runs it in a process of its own, and waits until it is ready. */
static pid_t spawn(void (*play)(int fd)) {
        int fds[2];
        pid_t pid;
        char byte;

        check(pipe(fds) < 0 ? -errno : 0, "pipe");
        pid = fork();
        check(pid < 0 ? -errno : 0, "fork");
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                close_fd(fds[0]);
                become("alice");
                play(fds[1]);
                _exit(EXIT_SUCCESS);
        }
        close_fd(fds[1]);
        if (read(fds[0], &byte, 1) == 1)
                (void) sleep(getenv("HOSTILE_SEC") ? (unsigned) atoi(getenv("HOSTILE_SEC")) : 0);
        else
                (void) fprintf(stderr, "alice could not do it\n");
        close_fd(fds[0]);
        return pid;
}

static Times measure(unsigned rounds) {
        Times t = {};
        int fds[2];
        pid_t pid;

        check(pipe(fds) < 0 ? -errno : 0, "pipe");
        pid = fork();
        check(pid < 0 ? -errno : 0, "fork");
        if (pid == 0) {
                carol_measure(rounds, &t);
                (void) !write(fds[1], &t, sizeof(t));
                _exit(EXIT_SUCCESS);
        }
        close_fd(fds[1]);
        (void) !read(fds[0], &t, sizeof(t));
        close_fd(fds[0]);
        (void) waitpid(pid, NULL, 0);
        return t;
}

typedef enum Kind {
        GREED,    /* as much as possible */
        AT_LIMIT, /* at a limit per user */
        ALONE,    /* not beside others: it needs the same limits as another, or is not about the
                     service */
} Kind;

static const struct {
        const char *name;
        void (*play)(int fd);
        Kind kind;
} loads[] = {
        { "elsewhere", play_elsewhere, ALONE },
        { "holds", play_holds, AT_LIMIT },
        { "checks", play_checks, AT_LIMIT },
        { "opens", play_opens },
        { "samplers", play_samplers, AT_LIMIT },
        { "counters", play_counters, AT_LIMIT },
        { "lists", play_lists },
        { "probes", play_probes },
        { "objects", play_objects, ALONE },
        { "rubbish", play_rubbish },
        { "events", play_events },
        { "flood", play_flood },
        { "huge", play_huge, ALONE },
        { "unread", play_unread, ALONE },
        { "descriptors", play_descriptors, ALONE },
        { "signals", play_signals, ALONE },
};

/* Until what alice had is gone. */
static void settle(void) {
        sd_bus *bus = bus_open();

        (void) nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        for (;;) {
                sd_bus_message *reply = call(bus, next_objects(bus, NULL));
                unsigned n = 0;

                check(sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}"), "settle");
                while (sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}") > 0) {
                        const char *path, *state = "";

                        check(sd_bus_message_read_basic(reply, 'o', &path), "settle");
                        check(sd_bus_message_skip(reply, "a{sa{sv}}"), "settle");
                        if (strstr(path, "/hold/"))
                                (void) sd_bus_call_method(bus, PERFALLOC_BUS_NAME, path,
                                                          PERFALLOC_HOLD_INTERFACE, "Release", NULL,
                                                          NULL, NULL);
                        n += strstr(path, "/counter/") || strstr(path, "/sampler/");
                        (void) state;
                        check(sd_bus_message_exit_container(reply), "settle");
                }
                sd_bus_message_unref(reply);
                if (n == 0)
                        break;
        }
        sd_bus_flush_close_unref(bus);
}

static void row(const char *name, Times t, Times idle) {
        printf("%-12s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 "   x%.1f\n", name, t.median, t.p95,
               t.most, (double) t.median / (double) MAX(idle.median, UINT64_C(1)));
        (void) fflush(stdout);
}

static bool wanted(char *names[], const char *name) {
        if (!*names)
                return true;
        for (; *names; names++)
                if (strcmp(*names, name) == 0)
                        return true;
        return false;
}

/* All of those kinds at once. */
static void measure_together(const char *name, Kind first, Kind last, unsigned rounds, Times idle) {
        pid_t pids[ELEMENTSOF(loads)] = {};

        for (size_t i = 0; i < ELEMENTSOF(loads); i++)
                if (loads[i].kind >= first && loads[i].kind <= last)
                        pids[i] = spawn(loads[i].play);
        row(name, measure(rounds), idle);
        for (size_t i = 0; i < ELEMENTSOF(loads); i++)
                if (pids[i] > 0) {
                        (void) kill(pids[i], SIGKILL);
                        (void) waitpid(pids[i], NULL, 0);
                }
        settle();
}

int main(int argc, char *argv[]) {
        unsigned rounds = argc > 1 ? MAX((unsigned) atoi(argv[1]), 5u) : ROUNDS;
        char *none[] = { NULL }, **names = argc > 2 ? argv + 2 : none; /* none: all loads */
        Times idle = measure(rounds);

        printf("%-12s %8s %8s %8s   of the unloaded median (us)\n", "load", "median", "p95",
               "most");
        row("none", idle, idle);
        for (size_t i = 0; i < ELEMENTSOF(loads); i++) {
                pid_t pid;

                if (!wanted(names, loads[i].name))
                        continue;
                pid = spawn(loads[i].play);
                row(loads[i].name, measure(rounds), idle);
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
                settle();
        }
        if (wanted(names, "limits"))
                measure_together("limits", AT_LIMIT, AT_LIMIT, rounds, idle);
        if (wanted(names, "all"))
                measure_together("all", GREED, AT_LIMIT, rounds, idle);
        return EXIT_SUCCESS;
}

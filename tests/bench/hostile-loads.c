/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hostile-loads.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CONNECTIONS_MAX 8
#define HOLDS           1023
#define WAITS           1000
#define WAITS_EACH      120 /* the bus lets one connection await 128 replies */
#define COUNTERS        4000
#define SAMPLERS        60
#define FIRST_CPU       "pmus", "as", 1, "breakpoint", "cpus", "s", "0"

static sd_bus_message *method_new(sd_bus *bus, const char *path, const char *interface,
                                  const char *member, const char *types, ...) {
        sd_bus_message *m = bus_message(bus, SERVICE, path, interface, member);
        va_list ap;

        va_start(ap, types);
        if (types)
                check(sd_bus_message_appendv(m, types, ap), member);
        va_end(ap);
        return m;
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
                floods[i] = (Flood){ bus_open("alice"), next, userdata, 0 };
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
                bus_call(bus, method_new(bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
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
        sd_bus *bus = bus_open("alice");
        char *path = NULL;

        for (unsigned i = 0; i < HOLDS; i++) {
                free(path);
                path = hold_path(bus, UINT64_C(1800000000), i == 0);
        }
        for (unsigned i = 0; i < WAITS; i++) {
                if (i % WAITS_EACH == 0)
                        bus = bus_open("alice");
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

static void alice_opens(sd_bus *bus, unsigned n, char **ret_path) {
        sd_bus_message *m = method_new(bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                                       "OpenCounters", NULL),
                       *reply;
        const char *path;

        check(sd_bus_message_open_container(m, 'a', "s"), "OpenCounters");
        for (unsigned i = 0; i < n; i++)
                check(sd_bus_message_append_basic(m, 's', "cpu-clock"), "OpenCounters");
        check(sd_bus_message_close_container(m), "OpenCounters");
        check(sd_bus_message_append(m, "a{sv}", 1, "scope", "s", "cpu"), "OpenCounters");
        reply = bus_call(bus, m);
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
        sd_bus *bus = bus_open("alice");

        for (unsigned i = 0; i < COUNTERS; i += 100)
                alice_opens(bus, 100, NULL);
        ready(fd);
        flood(2, 100, next_opening, NULL);
}

static void play_samplers(int fd) {
        sd_bus *bus = bus_open("alice");

        for (unsigned i = 0; i < SAMPLERS; i++) {
                bool signals = i % 2;
                char *path;

                alice_opens(bus, 1, &path);
                (void) bus_call(bus,
                                method_new(bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
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
        sd_bus *bus = bus_open("alice");

        for (unsigned i = 0; i + 200 <= COUNTERS; i += 100)
                alice_opens(bus, 100, NULL);
        ready(fd);
        for (;;)
                pause();
}

static void play_objects(int fd) {
        sd_bus *bus = bus_open("alice");

        for (unsigned i = 0; i < COUNTERS; i += 100)
                alice_opens(bus, 100, NULL);
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
        sd_bus *bus = bus_open("alice");

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
        sd_bus *bus = bus_open("alice");

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
        sd_bus *bus = bus_open("alice");

        for (unsigned i = 0; i < COUNTERS; i += 100)
                alice_opens(bus, 100, NULL);
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
        sd_bus *bus = bus_open("alice");
        char *path;

        alice_opens(bus, 1, &path);
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
        sd_bus *bus = bus_open("alice");
        char *path;

        for (unsigned i = 0; i < SAMPLERS; i++) {
                sd_bus_message *m = method_new(bus, PERFALLOC_OBJECT_PATH,
                                               PERFALLOC_MANAGER_INTERFACE, "CreateSampler", NULL);

                check(sd_bus_message_open_container(m, 'a', "o"), "CreateSampler");
                for (unsigned j = 0; j < COUNTERS / SAMPLERS; j++) {
                        alice_opens(bus, 1, &path);
                        check(sd_bus_message_append_basic(m, 'o', path), "CreateSampler");
                        free(path);
                }
                check(sd_bus_message_close_container(m), "CreateSampler");
                check(sd_bus_message_append(m, "ta{sv}", (uint64_t) 10000, 1, "signal", "b", 1),
                      "CreateSampler");
                (void) bus_call(bus, m);
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

/* ---- all of them ---- */

const HostileLoad hostile_loads[] = {
        { "elsewhere", play_elsewhere, HOSTILE_ALONE },
        { "holds", play_holds, HOSTILE_AT_LIMIT },
        { "checks", play_checks, HOSTILE_AT_LIMIT },
        { "opens", play_opens, HOSTILE_GREED },
        { "samplers", play_samplers, HOSTILE_AT_LIMIT },
        { "counters", play_counters, HOSTILE_AT_LIMIT },
        { "lists", play_lists, HOSTILE_GREED },
        { "probes", play_probes, HOSTILE_GREED },
        { "objects", play_objects, HOSTILE_ALONE },
        { "rubbish", play_rubbish, HOSTILE_GREED },
        { "events", play_events, HOSTILE_GREED },
        { "flood", play_flood, HOSTILE_GREED },
        { "huge", play_huge, HOSTILE_ALONE },
        { "unread", play_unread, HOSTILE_ALONE },
        { "descriptors", play_descriptors, HOSTILE_ALONE },
        { "signals", play_signals, HOSTILE_ALONE },
        {},
};

pid_t hostile_start(const HostileLoad *l) {
        int fds[2];
        pid_t pid;
        char byte;

        check_errno(pipe2(fds, O_CLOEXEC), "pipe");
        pid = fork();
        check_errno(pid, "fork");
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                close_fd(fds[0]);
                l->play(fds[1]);
                _exit(EXIT_SUCCESS);
        }
        close_fd(fds[1]);
        if (read(fds[0], &byte, 1) != 1)
                (void) fprintf(stderr, "%s: alice could not do it\n", l->name);
        close_fd(fds[0]);
        return pid;
}

static const char *next_path(sd_bus_message *objects) {
        const char *path;

        if (sd_bus_message_enter_container(objects, 'e', "oa{sa{sv}}") <= 0)
                return NULL;
        check(sd_bus_message_read_basic(objects, 'o', &path), "objects");
        check(sd_bus_message_skip(objects, "a{sa{sv}}"), "objects");
        check(sd_bus_message_exit_container(objects), "objects");
        return path;
}

/* Releases all holds. Whether there is a counter or a sampler left. */
static bool is_left(sd_bus *bus) {
        sd_bus_message *reply = bus_call(bus, next_objects(bus, NULL));
        const char *path;
        bool left = false;

        check(sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}"), "objects");
        while ((path = next_path(reply))) {
                if (strstr(path, "/hold/"))
                        (void) sd_bus_call_method(bus, SERVICE, path, PERFALLOC_HOLD_INTERFACE,
                                                  "Release", NULL, NULL, NULL);
                left |= strstr(path, "/counter/") || strstr(path, "/sampler/");
        }
        sd_bus_message_unref(reply);
        return left;
}

void hostile_stop(pid_t pids[], size_t n) {
        sd_bus *bus = bus_open(NULL);

        for (size_t i = 0; i < n; i++) {
                check_errno(kill(pids[i], SIGKILL), "kill");
                check_errno(waitpid(pids[i], NULL, 0), "waitpid");
        }
        sleep_usec(100 * USEC_PER_MSEC);
        while (is_left(bus))
                ;
        sd_bus_flush_close_unref(bus);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A monitor that counts all the time and gives way, through org.perfalloc1: it has the service
 * count the writes to some variables of its own, on all CPUs, and prints every fifth of a second
 * how it stands:
 *
 *         STATE WRITES COUNTED...
 *
 * the state of its counters, the writes that it made to each variable, and what each counter says.
 * While somebody holds the breakpoints the state is "yielded" and the writes go uncounted;
 * afterwards the counters go on from where they stood.
 *
 * The counters end with the connection to the bus, so with this program.
 */

#include <errno.h>
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <time.h>

#define N_VARIABLES 4

static volatile uint64_t variables[N_VARIABLES];

static void fail(const char *what, const sd_bus_error *error, int r) {
        fprintf(stderr, "watch-writes: %s: %s\n", what,
                error->message ? error->message : strerror(-r));
        exit(EXIT_FAILURE);
}

static void open_counters(sd_bus *bus, char *paths[static N_VARIABLES]) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *call = NULL, *reply = NULL;
        char event[64];
        int r;

        r = sd_bus_message_new_method_call(bus, &call, PERFALLOC_BUS_NAME, PERFALLOC_OBJECT_PATH,
                                           PERFALLOC_MANAGER_INTERFACE, "OpenCounters");
        if (r >= 0)
                r = sd_bus_message_open_container(call, 'a', "s");
        for (int i = 0; r >= 0 && i < N_VARIABLES; i++) {
                snprintf(event, sizeof(event), "mem:%#" PRIxPTR "/8:w", (uintptr_t) &variables[i]);
                r = sd_bus_message_append(call, "s", event);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(call);
        if (r >= 0)
                r = sd_bus_message_append(call, "a{sv}", 3, "scope", "s", "cpu", "role", "s",
                                          "monitor", "name", "s", "watch-writes");
        if (r >= 0)
                r = sd_bus_call(bus, call, UINT64_MAX, &error, &reply);
        if (r >= 0)
                r = sd_bus_message_enter_container(reply, 'a', "o");
        for (int i = 0; r >= 0 && i < N_VARIABLES; i++) {
                const char *path;

                r = sd_bus_message_read(reply, "o", &path);
                if (r > 0 && !(paths[i] = strdup(path)))
                        r = -ENOMEM;
        }
        if (r < 0)
                fail("OpenCounters", &error, r);
        sd_bus_message_unref(call);
        sd_bus_message_unref(reply);
}

static uint64_t read_counter(sd_bus *bus, const char *path) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;
        uint64_t value = 0;
        int r;

        r = sd_bus_call_method(bus, PERFALLOC_BUS_NAME, path, PERFALLOC_COUNTER_INTERFACE, "Read",
                               &error, &reply, NULL);
        if (r >= 0)
                r = sd_bus_message_read(reply, "t", &value); /* the first of what it says */
        if (r < 0)
                fail("Read", &error, r);
        sd_bus_message_unref(reply);
        return value;
}

static char *read_state(sd_bus *bus, const char *path) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        char *state;
        int r;

        r = sd_bus_get_property_string(bus, PERFALLOC_BUS_NAME, path, PERFALLOC_COUNTER_INTERFACE,
                                       "State", &error, &state);
        if (r < 0)
                fail("State", &error, r);
        return state;
}

int main(void) {
        const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
        char *paths[N_VARIABLES];
        sd_bus *bus;
        int r;

        r = sd_bus_open_system(&bus);
        if (r < 0)
                fail("system bus", &SD_BUS_ERROR_NULL, r);
        open_counters(bus, paths);

        for (uint64_t writes = 0;; writes++) {
                if (writes % 20 == 0) {
                        char *state = read_state(bus, paths[0]);

                        printf("%s %" PRIu64, state, writes);
                        for (int i = 0; i < N_VARIABLES; i++)
                                printf(" %" PRIu64, read_counter(bus, paths[i]));
                        puts("");
                        fflush(stdout);
                        free(state);
                }
                for (int i = 0; i < N_VARIABLES; i++)
                        variables[i]++;
                nanosleep(&pause, NULL);
        }
}

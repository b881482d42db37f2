/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A registered monitor of breakpoints, for tests: it answers each request to yield, and prints its
 * signals: "registered PATH", "yield HOLD", "resume".
 */

#include <perfalloc/dbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

static char *path;

static void check(int r, const char *what) {
        if (r >= 0)
                return;
        fprintf(stderr, "yielder: %s: %s\n", what, strerror(-r));
        exit(EXIT_FAILURE);
}

/* The lease stays open in the reply, which is never freed. */
static void enroll(sd_bus *bus) {
        sd_bus_message *reply = NULL;
        const char *p;

        check(sd_bus_call_method(bus, PERFALLOC_BUS_NAME, PERFALLOC_OBJECT_PATH,
                                 PERFALLOC_MANAGER_INTERFACE, "RegisterMonitor", NULL, &reply,
                                 "sa{sv}", "yielder", 1, "pmus", "as", 1, "breakpoint"),
              "RegisterMonitor");
        check(sd_bus_message_read(reply, "o", &p), "RegisterMonitor");
        path = strdup(p);
        printf("registered %s\n", p);
}

static void hear(sd_bus *bus, sd_bus_message *m) {
        const char *hold;

        if (sd_bus_message_is_signal(m, PERFALLOC_MONITOR_INTERFACE, "Resume") > 0)
                puts("resume");
        if (sd_bus_message_is_signal(m, PERFALLOC_MONITOR_INTERFACE, "Yield") <= 0)
                return;
        check(sd_bus_message_read(m, "o", &hold), "Yield");
        printf("yield %s\n", hold);
        check(sd_bus_call_method_async(bus, NULL, PERFALLOC_BUS_NAME, path,
                                       PERFALLOC_MONITOR_INTERFACE, "Yielded", NULL, NULL, "o",
                                       hold),
              "Yielded");
}

int main(void) {
        sd_bus *bus;

        setlinebuf(stdout);
        check(sd_bus_open_system(&bus), "the bus");
        enroll(bus);
        for (;;) {
                sd_bus_message *m = NULL;
                int r = sd_bus_process(bus, &m);

                check(r, "the bus");
                if (m)
                        hear(bus, m);
                sd_bus_message_unref(m);
                if (r == 0)
                        check(sd_bus_wait(bus, UINT64_MAX), "the bus");
        }
}

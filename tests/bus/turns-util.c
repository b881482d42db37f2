/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "turns-util.h"

#include <signal.h>

#include "service-process.h"

void turns_set_up(TurnsFixture *f, const void *data) {
        f->other = client_new("root");
        client_greet(f->other);
        f->descriptors = service_descriptors();
}

void turns_tear_down(TurnsFixture *f, const void *data) {
        await(client_count(f->other, "counter") == 0);
        await(service_descriptors() <= f->descriptors);
        client_free(f->other);
}

sd_bus_message *many_message(Client *c, const char *cpus, const char *role, bool start) {
        sd_bus_message *m = client_message(c, MANAGER, "OpenCounters");

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "s"), >=, 0);
        for (unsigned i = 0; i < MANY; i++)
                g_assert_cmpint(sd_bus_message_append(m, "s", "dummy"), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "a{sv}", 4, "scope", "s", "cpu", "cpus", "s", cpus,
                                              "role", "s", role, "start", "b", (int) start),
                        >=, 0);
        return m;
}

void many_open(Client *c, const char *cpus, const char *role, bool start) {
        g_autoptr(sd_bus_message) m = many_message(c, cpus, role, start);

        sd_bus_message_unref(client_call_message(c, m));
}

bool bus_knows(Client *c, const char *name) {
        g_autoptr(sd_bus_message) reply = NULL;
        int knows;

        bus_check(sd_bus_call_method(c->bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                     "org.freedesktop.DBus", "NameHasOwner", NULL, &reply, "s",
                                     name),
                  "NameHasOwner");
        bus_check(sd_bus_message_read_basic(reply, 'b', &knows), "NameHasOwner");
        return knows;
}

void service_go_on(Client *sender) {
        g_assert_true(bus_knows(sender, sender->name)); /* the bus has passed on what was sent */
        g_assert_cmpint(kill(service_pid(), SIGCONT), ==, 0);
}

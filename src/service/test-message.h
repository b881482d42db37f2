/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For the tests: messages as a client would send them, written, sealed and read back. Nobody is at
 * the other end of the bus.
 */

#include <glib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>

#include "core/util.h"

typedef struct Desert Desert;

struct Desert {
        sd_bus *bus;
        int far_end;
};

_unused_ static void desert_up(Desert *d) {
        int ends[2];

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), ==, 0);
        g_assert_cmpint(sd_bus_new(&d->bus), >=, 0);
        g_assert_cmpint(sd_bus_set_fd(d->bus, ends[0], ends[0]), >=, 0);
        g_assert_cmpint(sd_bus_start(d->bus), >=, 0);
        d->far_end = ends[1];
}

_unused_ static void desert_down(Desert *d) {
        d->bus = sd_bus_close_unref(d->bus);
        d->far_end = close_fd(d->far_end);
}

/* To be filled in. */
_unused_ static sd_bus_message *message_new(const Desert *d) {
        sd_bus_message *m;

        g_assert_cmpint(
                sd_bus_message_new_method_call(d->bus, &m, NULL, "/a", "org.example.A", "Call"), >=,
                0);
        return m;
}

/* As it arrives. */
_unused_ static sd_bus_message *message_seal(sd_bus_message *m) {
        g_assert_cmpint(sd_bus_message_seal(m, 1, 0), >=, 0);
        g_assert_cmpint(sd_bus_message_rewind(m, true), >=, 0);
        return m;
}

/* Adds one option to the open dictionary. */
#define message_option(m, key, ...)                                                                \
        g_assert_cmpint(sd_bus_message_append((m), "{sv}", (key), __VA_ARGS__), >=, 0)

_unused_ static void message_open_options(sd_bus_message *m) {
        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "{sv}"), >=, 0);
}

_unused_ static sd_bus_message *message_close_options(sd_bus_message *m) {
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        return message_seal(m);
}

/* An option that is an array of so many strings. */
_unused_ static void message_option_strings(sd_bus_message *m, const char *key, const char *string,
                                            unsigned n) {
        g_assert_cmpint(sd_bus_message_open_container(m, 'e', "sv"), >=, 0);
        g_assert_cmpint(sd_bus_message_append_basic(m, 's', key), >=, 0);
        g_assert_cmpint(sd_bus_message_open_container(m, 'v', "as"), >=, 0);
        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "s"), >=, 0);
        while (n-- > 0)
                g_assert_cmpint(sd_bus_message_append_basic(m, 's', string), >=, 0);
        for (int i = 0; i < 3; i++)
                g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
}

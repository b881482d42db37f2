/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests: messages as a client sends them: written, sealed and read back. Nothing is connected
 * to the bus.
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

/* As the service gets it. */
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

/* An option with an array of n strings. */
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

/* Options as text: "scope s cpu|counters u 3|pmus as cpu,power"; the value of an h is fd. */
_unused_ static void message_write_options(sd_bus_message *m, const char *text, int fd) {
        g_auto(GStrv) options = g_strsplit(text, "|", -1);

        for (char **option = options; *option && **option; option++) {
                g_auto(GStrv) words = g_strsplit(*option, " ", 3);
                const char *key = words[0], *type = words[1], *value = words[2] ? words[2] : "";

                if (strcmp(type, "s") == 0) {
                        message_option(m, key, "s", value);
                } else if (strcmp(type, "b") == 0) {
                        message_option(m, key, "b", strcmp(value, "yes") == 0);
                } else if (strcmp(type, "u") == 0) {
                        message_option(m, key, "u", (uint32_t) g_ascii_strtoull(value, NULL, 10));
                } else if (strcmp(type, "t") == 0) {
                        message_option(m, key, "t", g_ascii_strtoull(value, NULL, 10));
                } else if (strcmp(type, "h") == 0) {
                        message_option(m, key, "h", fd);
                } else {
                        g_auto(GStrv) strings = g_strsplit(value, ",", -1);

                        g_assert_cmpstr(type, ==, "as");
                        g_assert_cmpint(sd_bus_message_open_container(m, 'e', "sv"), >=, 0);
                        g_assert_cmpint(sd_bus_message_append_basic(m, 's', key), >=, 0);
                        g_assert_cmpint(sd_bus_message_open_container(m, 'v', "as"), >=, 0);
                        g_assert_cmpint(sd_bus_message_append_strv(m, strings), >=, 0);
                        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
                        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
                }
        }
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests: a private bus, clients of several uids in one process and one loop, and waiting for
 * conditions.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <glib.h>
#include <glib/gstdio.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "core/util.h"

#define NOBODY 65534

typedef struct TestBus TestBus;
typedef struct TestCall TestCall;

struct TestBus {
        char *dir;
        char *address;
        GPid pid;
};

/* One method call under way. */
struct TestCall {
        bool done;
        char *error; /* NULL: it succeeded */
        char *message;
        sd_bus_slot *slot;
};

/* As the system bus: all may connect, own and send, and replies and matches have its limits. */
static const char test_bus_config[] =
        "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\""
        " \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">"
        "<busconfig><listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>"
        "<policy context=\"default\"><allow user=\"*\"/><allow own=\"*\"/>"
        "<allow send_type=\"method_call\"/><allow send_type=\"signal\"/>"
        "<allow send_requested_reply=\"true\" send_type=\"method_return\"/>"
        "<allow send_requested_reply=\"true\" send_type=\"error\"/>"
        "<allow receive_type=\"method_call\"/><allow receive_type=\"method_return\"/>"
        "<allow receive_type=\"error\"/><allow receive_type=\"signal\"/></policy></busconfig>";

static inline void test_bus_child(gpointer userdata) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static inline void test_bus_up(TestBus *bus) {
        g_autofree char *template =
                g_build_filename(g_get_tmp_dir(), "perfalloc-test-XXXXXX", NULL);
        g_autofree char *config = NULL, *file = NULL, *option = NULL;
        g_autoptr(GError) error = NULL;
        char ready[512];
        int out;

        bus->dir = g_strdup(g_mkdtemp(template));
        g_assert_nonnull(bus->dir);
        g_assert_cmpint(g_chmod(bus->dir, 0755), ==, 0);
        config = g_strdup_printf(test_bus_config, bus->dir);
        file = g_build_filename(bus->dir, "config", NULL);
        g_assert_true(g_file_set_contents(file, config, -1, NULL));
        bus->address = g_strdup_printf("unix:path=%s/bus", bus->dir);

        option = g_strdup_printf("--config-file=%s", file);
        char *argv[] = { (char *) "dbus-daemon", option, (char *) "--nofork",
                         (char *) "--print-address", NULL };
        g_spawn_async_with_pipes(NULL, argv, NULL,
                                 G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD |
                                         G_SPAWN_STDERR_TO_DEV_NULL,
                                 test_bus_child, NULL, &bus->pid, NULL, &out, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpint(read(out, ready, sizeof(ready)), >, 0);
        close_fd(out);
}

static inline void test_bus_down(TestBus *bus) {
        g_autofree char *file = g_build_filename(bus->dir, "config", NULL);
        g_autofree char *socket = g_build_filename(bus->dir, "bus", NULL);

        (void) kill(bus->pid, SIGTERM);
        (void) waitpid(bus->pid, NULL, 0);
        (void) g_unlink(file);
        (void) g_unlink(socket);
        (void) g_rmdir(bus->dir);
        g_clear_pointer(&bus->dir, g_free);
        g_clear_pointer(&bus->address, g_free);
}

/* The bus takes the effective uid at connect() as the caller's. */
static inline sd_bus *test_connect(const char *address, sd_event *event, uid_t uid) {
        uid_t own = geteuid();
        sd_bus *bus;

        g_assert_cmpint(sd_bus_new(&bus), >=, 0);
        g_assert_cmpint(sd_bus_set_address(bus, address), >=, 0);
        g_assert_cmpint(sd_bus_set_bus_client(bus, 1), >=, 0);
        if (uid != own)
                g_assert_cmpint(seteuid(uid), ==, 0);
        g_assert_cmpint(sd_bus_start(bus), >=, 0);
        if (uid != own)
                g_assert_cmpint(seteuid(own), ==, 0);
        g_assert_cmpint(sd_bus_attach_event(bus, event, 0), >=, 0);
        return bus;
}

static inline const char *test_name(sd_bus *bus) {
        const char *name;

        g_assert_cmpint(sd_bus_get_unique_name(bus, &name), >=, 0);
        return name;
}

/* Runs the loop until the condition holds, for a minute at most. */
#define WAIT_UNTIL(event, condition)                                                               \
        do {                                                                                       \
                gint64 _end = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;                        \
                while (!(condition)) {                                                             \
                        g_assert_cmpint(sd_event_run((event), 20000), >=, 0);                      \
                        if (g_get_monotonic_time() > _end)                                         \
                                g_error("waited in vain for: %s", #condition);                     \
                }                                                                                  \
        } while (0)

static inline int test_call_done(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        TestCall *call = userdata;

        g_assert_false(call->done);
        call->done = true;
        if (e) {
                call->error = g_strdup(e->name);
                call->message = g_strdup(e->message);
        }
        return 1;
}

/* Waits until all earlier messages have reached the bus: calls the bus itself. */
static inline void test_sync(sd_event *event, sd_bus *bus) {
        TestCall call = {};

        g_assert_cmpint(sd_bus_call_method_async(bus, &call.slot, "org.freedesktop.DBus",
                                                 "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                                 "GetId", test_call_done, &call, NULL),
                        >=, 0);
        WAIT_UNTIL(event, call.done);
        sd_bus_slot_unref(call.slot);
}

static inline void test_call_clear(TestCall *call) {
        call->slot = sd_bus_slot_unref(call->slot);
        g_clear_pointer(&call->error, g_free);
        g_clear_pointer(&call->message, g_free);
        call->done = false;
}

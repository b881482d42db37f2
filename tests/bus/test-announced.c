/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What InterfacesAdded tells of an object, which the service writes by itself: all that
 * GetManagedObjects tells of it, every property as libsystemd's GetAll gives it, and nothing that
 * is for the object's owner.
 */

#include "bus-util.h"
#include "sampler-util.h"

#define MONITOR PERFALLOC_MONITOR_INTERFACE

/* Of the container that comes next. */
static char *container_text(sd_bus_message *m, char type, const char *contents) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        g_assert_nonnull(f);
        bus_check(sd_bus_message_enter_container(m, type, contents), contents);
        bus_check(sd_bus_message_dump(m, f, SD_BUS_MESSAGE_DUMP_SUBTREE_ONLY), contents);
        g_assert_cmpint(fclose(f), ==, 0);
        return text;
}

/* The interfaces of an object, as a signal tells them. */
static sd_bus_message *hear_added(Client *c, const char *path) {
        for (;;) {
                g_autoptr(sd_bus_message) m = NULL;
                const char *about;

                await((m = client_next(c, 0)));
                if (!sd_bus_message_is_signal(m, "org.freedesktop.DBus.ObjectManager",
                                              "InterfacesAdded"))
                        continue;
                bus_check(sd_bus_message_read_basic(m, 'o', &about), "InterfacesAdded");
                if (strcmp(about, path) == 0)
                        return TAKE_PTR(m);
        }
}

static char *managed_text(Client *c, const char *wanted) {
        g_autoptr(sd_bus_message) objects = client_objects(c);
        const char *path = NULL;

        while (objects_next(objects, &path)) {
                if (strcmp(path, wanted) == 0)
                        return container_text(objects, 'a', "{sa{sv}}");
                bus_check(sd_bus_message_skip(objects, "a{sa{sv}}"), path);
        }
        g_error("%s is not among the objects", wanted);
}

/* The properties of that interface, in a message of interfaces. */
static char *interface_text(sd_bus_message *m, const char *interface) {
        const char *name;

        bus_check(sd_bus_message_rewind(m, true), interface);
        bus_check(sd_bus_message_skip(m, "o"), interface);
        bus_check(sd_bus_message_enter_container(m, 'a', "{sa{sv}}"), interface);
        while (sd_bus_message_enter_container(m, 'e', "sa{sv}") > 0) {
                bus_check(sd_bus_message_read_basic(m, 's', &name), interface);
                if (strcmp(name, interface) == 0)
                        return container_text(m, 'a', "{sv}");
                bus_check(sd_bus_message_skip(m, "a{sv}"), interface);
                bus_check(sd_bus_message_exit_container(m), interface);
        }
        g_error("there is no %s", interface);
}

static void assert_announced(Client *c, const char *path, const char *interface) {
        g_autoptr(sd_bus_message) added = hear_added(c, path), all = NULL;
        g_autofree char *told = container_text(added, 'a', "{sa{sv}}"),
                        *managed = managed_text(c, path), *told_properties = NULL,
                        *properties = NULL;

        g_assert_cmpstr(told, ==, managed);
        all = client_call(c, path, "org.freedesktop.DBus.Properties", "GetAll", "s", interface);
        told_properties = interface_text(added, interface);
        properties = container_text(all, 'a', "{sv}");
        g_assert_cmpstr(told_properties, ==, properties);
}

static void test_counter(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autofree char *path = NULL;

        client_watch(bob);
        path = counter_open(alice, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu", "name", "s",
                            "secret");
        assert_announced(bob, path, COUNTER);
}

/* Behind another one, where nothing changes. */
static void test_hold(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice"),
                          bob = client_new("bob");
        g_autofree char *first = NULL, *path = NULL;
        _cleanup_close_ int lease = -1, second = -1;

        first = hold_take(root, &lease, "a{sv}", 2, BREAKPOINTS, "mode", "s", "exclusive");
        client_watch(bob);
        path = hold_take(alice, &second, "a{sv}", 2, BREAKPOINTS, "wait_usec", "t",
                         60 * USEC_PER_SEC);
        g_assert_true(hold_is(bob, path, "queued"));
        assert_announced(bob, path, HOLD);
}

/* Its tag may be an address of the client's. */
static void test_sampler(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autofree char *counter = counter_open(alice, "task-clock:u", "a{sv}", 0);
        g_autoptr(Sampler) s = NULL;

        client_watch(bob);
        s = sampler_create(alice, ONE_COUNTER(counter), USEC_PER_SEC, "a{sv}", 1, "tag", "t",
                           UINT64_C(0xfedcba9876543210));
        assert_announced(bob, s->path, SAMPLER);
}

static void test_monitor(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autoptr(sd_bus_message) reply = NULL;
        const char *path;

        client_watch(bob);
        reply = client_call(alice, MANAGER, "RegisterMonitor", "sa{sv}", "a secret", 1,
                            BREAKPOINTS);
        bus_check(sd_bus_message_read(reply, "oh", &path, NULL), "RegisterMonitor");
        assert_announced(bob, path, MONITOR);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/announced/counter", test_counter);
        g_test_add_func("/announced/hold", test_hold);
        g_test_add_func("/announced/sampler", test_sampler);
        g_test_add_func("/announced/monitor", test_monitor);
        return g_test_run();
}

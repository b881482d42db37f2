/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Long calls are made in slices: other clients are answered meanwhile. Answers are counted, not
 * their time. */

#include "bus-util.h"

enum { MANY = 1000, ANSWERS_MIN = 4 };

typedef struct Fixture {
        Client *other;
        unsigned descriptors;
} Fixture;

static void fixture_set_up(Fixture *f, const void *data) {
        f->other = client_new("root");
        client_greet(f->other);
        f->descriptors = service_descriptors();
}

static void fixture_tear_down(Fixture *f, const void *data) {
        await(client_count(f->other, "counter") == 0);
        await(service_descriptors() <= f->descriptors);
        client_free(f->other);
}

/* MANY counters of a CPU, which count. */
static sd_bus_message *opening_new(Client *c, const char *role) {
        sd_bus_message *m = client_message(c, MANAGER, "OpenCounters");

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "s"), >=, 0);
        for (unsigned i = 0; i < MANY; i++)
                g_assert_cmpint(sd_bus_message_append(m, "s", "dummy"), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "a{sv}", 3, "scope", "s", "cpu", "cpus", "s", "0",
                                              "role", "s", role),
                        >=, 0);
        return m;
}

static void counters_open(Client *c, const char *role) {
        sd_bus_message_unref(client_call_message(c, opening_new(c, role)));
}

/* Calls of the other client that are answered until this one is. In one turn it would be one, and
 * another one while the answer is on its way. */
static unsigned answers_until(Fixture *f, Client *c, uint64_t cookie) {
        unsigned n = 0;

        for (; !client_has_answer(c, cookie); n++)
                client_greet(f->other);
        sd_bus_message_unref(client_receive(c, cookie));
        return n;
}

/* ---- opening ---- */

/* The more events count on a CPU, the longer the kernel takes to start one. */
static void test_opening(Fixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root");
        unsigned n;

        counters_open(c, "foreground");
        counters_open(c, "foreground");
        client_greet(f->other);
        n = answers_until(f, c, client_send_message(c, opening_new(c, "foreground")));
        g_test_message("%u answers meanwhile", n);
        g_assert_cmpuint(n, >=, ANSWERS_MIN);
}

static void test_opening_client_leaves(Fixture *f, const void *data) {
        Client *c = client_new("root");
        uint64_t cookie;

        counters_open(c, "foreground");
        cookie = client_send_message(c, opening_new(c, "foreground"));
        client_greet(f->other);
        g_assert_false(client_has_answer(c, cookie));
        client_free(c);
}

static void test_opening_exclusive_hold(Fixture *f, const void *data) {
        g_autoptr(Client) c = client_new("root"), holder = client_new("alice");
        g_autoptr(sd_bus_message) reply = NULL;
        g_autofree char *path = NULL;
        uint64_t cookie;
        int lease;

        counters_open(c, "foreground");
        counters_open(c, "foreground");
        cookie = client_send_message(c, opening_new(c, "foreground"));
        path = hold_take(holder, &lease, "a{sv}", 3, "pmus", "as", 1, "software", "mode", "s",
                         "exclusive", "best_effort", "b", 1);
        reply = client_receive(c, cookie);
        g_assert_true(sd_bus_message_is_method_error(reply, PERFALLOC_ERROR_BUSY));
        await(service_events() == 2 * MANY);
        close_fd(lease);
}

#define ADD(name, test)                                                                            \
        g_test_add("/turns/" name, Fixture, NULL, fixture_set_up, test, fixture_tear_down)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        ADD("opening", test_opening);
        ADD("opening-client-leaves", test_opening_client_leaves);
        ADD("opening-and-an-exclusive-hold", test_opening_exclusive_hold);
        return g_test_run();
}

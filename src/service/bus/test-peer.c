/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/auth/test-polkitd.h"

#include "machine.h"

static TestBus bus;

static sd_bus *client_new(TestService *s, uid_t uid) {
        return test_connect(bus.address, s->event, uid);
}

static void test_handler_finds_who_called(void) {
        uid_t uid = geteuid() == 0 ? NOBODY : geteuid();
        sd_bus *client;
        TestService s;

        test_service_start(&s, bus.address);
        client = client_new(&s, uid);
        test_service_assert_ok(&s, client, "ListEvents", ACTION_NONE);
        g_assert_cmpuint(s.uid, ==, uid);
        g_assert_cmpint(s.pid, ==, getpid());
        g_assert_cmpuint(s.n_gids, >, 0);
        sd_bus_flush_close_unref(client);
        test_service_stop(&s);
}

static int on_order(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        GArray *order = userdata;
        uint64_t cookie;

        g_assert_cmpint(sd_bus_message_get_cookie(m, &cookie), >=, 0);
        if (sd_bus_message_is_method_call(m, NULL, "ListEvents"))
                g_array_append_val(order, cookie);
        return 0;
}

/* The first call of a connection waits for its credentials, and no later call overtakes it. */
static void test_handlers_run_in_the_order_of_the_calls(void) {
        GArray *order = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *filter = NULL;
        TestCall calls[40];
        sd_bus *client;
        TestService s;

        test_service_start(&s, bus.address);
        /* runs after the scheduler's filter: sees what passes */
        s.scheduler = scheduler_free(s.scheduler);
        g_assert_cmpint(sd_bus_add_filter(s.bus, &filter, on_order, order), >=, 0);
        g_assert_cmpint(scheduler_new(&s.context, test_service_gone, &s, &s.scheduler), >=, 0);

        client = client_new(&s, geteuid());
        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                test_service_call(&s, client, "ListEvents", ACTION_NONE, &calls[i]);
        for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
                WAIT_UNTIL(s.event, calls[i].done);
                test_call_clear(&calls[i]);
        }
        g_assert_cmpuint(order->len, ==, ELEMENTSOF(calls));
        for (size_t i = 1; i < order->len; i++)
                g_assert_cmpuint(g_array_index(order, uint64_t, i - 1), <,
                                 g_array_index(order, uint64_t, i));
        g_array_unref(order);
        filter = sd_bus_slot_unref(filter);
        sd_bus_flush_close_unref(client);
        test_service_stop(&s);
}

static void test_every_call_is_answered_once(void) {
        enum { N = IDENTIFYING_PEER_MAX + 100 };
        static TestCall calls[N];
        sd_bus *clients[2];
        TestService s;

        test_service_start(&s, bus.address);
        for (int c = 0; c < 2; c++)
                clients[c] = client_new(&s, geteuid());
        for (int i = 0; i < N; i++) /* the bus lets one connection await 128 */
                test_service_call(&s, clients[i % 2], "ListEvents", ACTION_NONE, &calls[i]);
        for (int i = 0; i < N; i++) {
                WAIT_UNTIL(s.event, calls[i].done);
                g_assert_cmpstr(calls[i].error, ==, NULL);
                test_call_clear(&calls[i]);
        }
        g_assert_cmpuint(s.n_runs, ==, N);
        for (int c = 0; c < 2; c++)
                sd_bus_flush_close_unref(clients[c]);
        test_service_stop(&s);
}

/* Calls that want no answer are not limited by the bus. */
static void test_flood_of_a_stranger_is_bounded(void) {
        sd_bus *client;
        TestService s;

        test_service_start(&s, bus.address);
        client = client_new(&s, geteuid());
        (void) test_name(client);
        for (int i = 0; i < 4 * (int) IDENTIFYING_PEER_MAX; i++) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

                g_assert_cmpint(
                        sd_bus_message_new_method_call(client, &m, s.name, PERFALLOC_OBJECT_PATH,
                                                       PERFALLOC_MANAGER_INTERFACE, "ListEvents"),
                        >=, 0);
                g_assert_cmpint(sd_bus_message_append(m, "us", ACTION_NONE, ""), >=, 0);
                g_assert_cmpint(sd_bus_message_set_expect_reply(m, 0), >=, 0);
                g_assert_cmpint(sd_bus_send(client, m, NULL), >=, 0);
        }
        /* after this reply, all earlier calls are on their way to the service, ahead of the bus's
         * later replies */
        g_assert_cmpint(sd_bus_call_method(client, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                           "org.freedesktop.DBus", "GetId", NULL, NULL, NULL),
                        >=, 0);
        WAIT_UNTIL(s.event, s.n_runs == IDENTIFYING_PEER_MAX);
        test_service_assert_ok(&s, client, "ListEvents", ACTION_NONE);
        g_assert_cmpuint(s.n_runs, ==, IDENTIFYING_PEER_MAX + 1);
        sd_bus_flush_close_unref(client);
        test_service_stop(&s);
}

static Peer *hold_peer(TestService *s, sd_bus *client) {
        Peer *peer;

        test_service_assert_ok(s, client, "ListEvents", ACTION_NONE);
        g_assert_cmpint(
                peers_recall(s->context.peers, test_name(client), geteuid(), getpid(), &peer), >=,
                0);
        return peer;
}

static void test_leaving_is_told_once(void) {
        sd_bus *client;
        Peer *peer;
        TestService s;

        test_service_start(&s, bus.address);
        client = client_new(&s, geteuid());
        peer = hold_peer(&s, client);
        g_assert_false(peer->gone);
        sd_bus_flush_close_unref(client);
        WAIT_UNTIL(s.event, peer->gone);
        test_sync(s.event, s.bus);
        g_assert_cmpuint(s.n_left, ==, 1);
        g_assert_null(peer_unref(peer));
        test_service_stop(&s);
}

/* From NAMEWATCH_MATCHES_MAX on, one match covers all. */
static void test_leaving_of_a_crowd_is_told(void) {
        enum { N = NAMEWATCH_MATCHES_MAX + 40 };
        sd_bus *clients[N];
        Peer *peers[N];
        TestService s;

        test_service_start(&s, bus.address);
        for (int i = 0; i < N; i++) {
                clients[i] = client_new(&s, geteuid());
                peers[i] = hold_peer(&s, clients[i]);
        }
        g_assert_true(peers[N - 1]->watch.covered);
        g_assert_false(peers[0]->watch.covered);
        for (int i = N - 1; i >= 0; i--)
                sd_bus_flush_close_unref(clients[i]);
        WAIT_UNTIL(s.event, s.n_left == N);
        for (int i = 0; i < N; i++) {
                g_assert_true(peers[i]->gone);
                peer_unref(peers[i]);
        }

        /* a new client has a match of its own again */
        clients[0] = client_new(&s, geteuid());
        peers[0] = hold_peer(&s, clients[0]);
        g_assert_false(peers[0]->watch.covered);
        peer_unref(peers[0]);
        sd_bus_flush_close_unref(clients[0]);
        test_service_stop(&s);
}

/* Any client can send a signal that looks like the bus' own. */
static void test_nobody_can_be_declared_gone(void) {
        sd_bus *client, *liar;
        Peer *peer;
        TestService s;

        test_service_start(&s, bus.address);
        client = client_new(&s, geteuid());
        liar = client_new(&s, geteuid());
        peer = hold_peer(&s, client);
        for (int i = 0; i < 2; i++) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

                g_assert_cmpint(sd_bus_message_new_signal(liar, &m, "/org/freedesktop/DBus",
                                                          "org.freedesktop.DBus",
                                                          "NameOwnerChanged"),
                                >=, 0);
                g_assert_cmpint(sd_bus_message_append(m, "sss", peer->name, peer->name, ""), >=, 0);
                g_assert_cmpint(sd_bus_send_to(liar, m, i == 0 ? s.name : NULL, NULL), >=, 0);
        }
        /* the call comes after the forged signals */
        test_service_assert_ok(&s, liar, "ListEvents", ACTION_NONE);
        g_assert_false(peer->gone);
        g_assert_cmpuint(s.n_left, ==, 0);
        peer_unref(peer);
        sd_bus_flush_close_unref(client);
        sd_bus_flush_close_unref(liar);
        test_service_stop(&s);
}

static void test_caller_that_left_at_once_reaches_no_handler(void) {
        sd_bus *client, *other;
        TestCall call;
        TestService s;

        test_service_start(&s, bus.address);
        client = client_new(&s, geteuid());
        (void) test_name(client);
        test_service_call(&s, client, "ListEvents", ACTION_NONE, &call);
        g_assert_cmpint(sd_bus_flush(client), >=, 0);
        test_call_clear(&call);
        sd_bus_flush_close_unref(client); /* before the service has read anything */

        other = client_new(&s, geteuid());
        test_service_assert_ok(&s, other, "ListEvents", ACTION_NONE);
        g_assert_cmpuint(s.n_runs, <=, 2);
        g_assert_cmpuint(s.n_left, <=, 1);
        sd_bus_flush_close_unref(other);
        test_service_stop(&s);
}

/* Connections that own nothing are served when they call again, however many others came in
 * between. */
static void test_forgotten_peer_is_known_again(void) {
        enum { N = 2 * PEERS_IDLE_MAX };
        sd_bus *clients[N];
        TestCall calls[N];
        TestService s;

        test_service_start(&s, bus.address);
        for (int i = 0; i < N; i++)
                clients[i] = client_new(&s, geteuid());
        for (int round = 0; round < 3; round++) {
                for (int i = 0; i < N; i++)
                        test_service_call(&s, clients[i], "ListEvents", ACTION_NONE, &calls[i]);
                for (int i = 0; i < N; i++) {
                        WAIT_UNTIL(s.event, calls[i].done);
                        g_assert_cmpstr(calls[i].error, ==, NULL);
                        test_call_clear(&calls[i]);
                }
        }
        g_assert_cmpuint(s.n_runs, ==, 3 * N);
        for (int i = 0; i < N; i++)
                sd_bus_flush_close_unref(clients[i]);
        test_service_stop(&s);
}

static void test_recalled_peer_that_left_meanwhile_leaves(void) {
        Peer *peer;
        TestService s;

        test_service_start(&s, bus.address);
        g_assert_cmpint(peers_recall(s.context.peers, ":1.999999", 1000, 4711, &peer), >=, 0);
        g_assert_cmpuint(peer->uid, ==, 1000);
        g_assert_false(peer->gone);
        WAIT_UNTIL(s.event, peer->gone);
        g_assert_cmpuint(s.n_left, ==, 1);
        peer_unref(peer);
        test_service_stop(&s);
}

static void test_recalled_name_of_somebody_else_leaves(void) {
        sd_bus *client;
        Peer *peer;
        TestService s;

        test_service_start(&s, bus.address);
        client = client_new(&s, geteuid());
        g_assert_cmpint(
                peers_recall(s.context.peers, test_name(client), geteuid() + 1, 4711, &peer), >=,
                0);
        WAIT_UNTIL(s.event, peer->gone);
        peer_unref(peer);

        g_assert_cmpint(
                peers_recall(s.context.peers, test_name(client), geteuid(), getpid(), &peer), >=,
                0);
        test_service_assert_ok(&s, client, "ListEvents", ACTION_NONE);
        g_assert_false(peer->gone);
        peer_unref(peer);
        sd_bus_flush_close_unref(client);
        test_service_stop(&s);
}

int main(int argc, char *argv[]) {
        int r;

        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);
        test_bus_up(&bus);
        g_test_add_func("/peer/handler-finds-who-called", test_handler_finds_who_called);
        g_test_add_func("/peer/handlers-run-in-the-order-of-the-calls",
                        test_handlers_run_in_the_order_of_the_calls);
        g_test_add_func("/peer/every-call-is-answered-once", test_every_call_is_answered_once);
        g_test_add_func("/peer/flood-of-a-stranger-is-bounded",
                        test_flood_of_a_stranger_is_bounded);
        g_test_add_func("/peer/leaving-is-told-once", test_leaving_is_told_once);
        g_test_add_func("/peer/leaving-of-a-crowd-is-told", test_leaving_of_a_crowd_is_told);
        g_test_add_func("/peer/nobody-can-be-declared-gone", test_nobody_can_be_declared_gone);
        g_test_add_func("/peer/caller-that-left-at-once-reaches-no-handler",
                        test_caller_that_left_at_once_reaches_no_handler);
        g_test_add_func("/peer/forgotten-peer-is-known-again", test_forgotten_peer_is_known_again);
        g_test_add_func("/peer/recalled-peer-that-left-meanwhile-leaves",
                        test_recalled_peer_that_left_meanwhile_leaves);
        g_test_add_func("/peer/recalled-name-of-somebody-else-leaves",
                        test_recalled_name_of_somebody_else_leaves);
        r = g_test_run();
        test_bus_down(&bus);
        return r;
}

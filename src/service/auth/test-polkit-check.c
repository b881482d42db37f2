/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Many checks of many users, at a polkitd that answers when the test says so.
 */

#include <pwd.h>

#include "service/auth/polkit-check.h"
#include "service/auth/test-polkitd.h"
#include "service/bus/test-clock.h"

#include "machine.h"

typedef struct Crowd Crowd;

/* A check that the mock has not answered. */
typedef struct Pending {
        sd_bus_message *m;
        char name[32]; /* of the subject */
        char id[32];
} Pending;

struct Crowd {
        TestBus bus;
        TestService service;
        sd_bus *polkit;
        GArray *pending; /* of Pending, oldest first */
        unsigned most;   /* the most at any time */
        unsigned n_asked;
};

static int on_check(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *kind, *key, *name, *action, *id;
        Pending p = { .m = sd_bus_message_ref(m) };
        Crowd *c = userdata;
        uint32_t flags;

        g_assert_cmpint(sd_bus_message_read(m, "(sa{sv})s", &kind, 1, &key, "s", &name, &action),
                        >=, 0);
        g_assert_cmpint(sd_bus_message_skip(m, "a{ss}"), >=, 0);
        g_assert_cmpint(sd_bus_message_read(m, "us", &flags, &id), >=, 0);
        (void) g_strlcpy(p.name, name, sizeof(p.name));
        (void) g_strlcpy(p.id, id, sizeof(p.id));
        for (size_t i = 0; i < c->pending->len; i++)
                g_assert_cmpstr(g_array_index(c->pending, Pending, i).id, !=, id);
        g_array_append_val(c->pending, p);
        c->most = MAX(c->most, c->pending->len);
        c->n_asked++;
        return 1;
}

static void pending_answer(Crowd *c, size_t i, bool yes) {
        Pending p = g_array_index(c->pending, Pending, i);

        g_array_remove_index(c->pending, (guint) i);
        g_assert_cmpint(sd_bus_reply_method_return(p.m, "(bba{ss})", yes, 0, 0), >=, 0);
        sd_bus_message_unref(p.m);
}

static int on_cancel(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Crowd *c = userdata;
        const char *id;

        g_assert_cmpint(sd_bus_message_read(m, "s", &id), >=, 0);
        for (size_t i = 0; i < c->pending->len; i++)
                if (strcmp(g_array_index(c->pending, Pending, i).id, id) == 0) {
                        pending_answer(c, i, false);
                        break;
                }
        return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable polkit_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", on_check,
                      SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("CancelCheckAuthorization", "s", NULL, on_cancel, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static void crowd_up(Crowd *c, gconstpointer userdata) {
        test_bus_up(&c->bus);
        test_service_start(&c->service, c->bus.address);
        c->pending = g_array_new(FALSE, FALSE, sizeof(Pending));
        c->polkit = test_connect(c->bus.address, c->service.event, geteuid());
        g_assert_cmpint(sd_bus_add_object_vtable(c->polkit, NULL, POLKIT_PATH, POLKIT_INTERFACE,
                                                 polkit_vtable, c),
                        >=, 0);
        g_assert_cmpint(sd_bus_request_name(c->polkit, POLKIT_NAME, 0), >=, 0);
}

static void crowd_down(Crowd *c, gconstpointer userdata) {
        g_assert_cmpuint(test_service_n_authorizing(&c->service), ==, 0);
        g_assert_cmpuint(c->pending->len, ==, 0);
        g_array_unref(c->pending);
        sd_bus_flush_close_unref(c->polkit);
        test_service_stop(&c->service);
        test_bus_down(&c->bus);
}

static sd_bus *client_new(Crowd *c, uid_t uid) {
        return test_connect(c->bus.address, c->service.event, uid);
}

/* The n-th user of this machine that is not root: the bus has to know them. */
static uid_t user(size_t n) {
        static uid_t uids[32];
        static size_t n_uids;
        struct passwd *pw;

        while (n_uids == 0 && (pw = getpwent()))
                for (; pw && n_uids < ELEMENTSOF(uids); pw = getpwent())
                        if (pw->pw_uid != 0)
                                uids[n_uids++] = pw->pw_uid;
        endpwent();
        g_assert_cmpuint(n, <, n_uids);
        return uids[n];
}

static bool is_asked_for(Crowd *c, sd_bus *client) {
        for (size_t i = 0; i < c->pending->len; i++)
                if (strcmp(g_array_index(c->pending, Pending, i).name, test_name(client)) == 0)
                        return true;
        return false;
}

/* Answers everything, one by one, until all calls are done. */
static void answer_all(Crowd *c, TestCall *calls, size_t n) {
        for (size_t i = 0; i < n; i++)
                while (!calls[i].done) {
                        WAIT_UNTIL(c->service.event, calls[i].done || c->pending->len > 0);
                        if (c->pending->len > 0)
                                pending_answer(c, 0, true);
                }
        for (size_t i = 0; i < n; i++) {
                g_assert_cmpstr(calls[i].error, ==, NULL);
                test_call_clear(&calls[i]);
        }
}

static void test_prompts_of_one_user_delay_no_other(Crowd *c, gconstpointer userdata) {
        enum { N = 200 };
        static TestCall calls[N];
        sd_bus *clients[2] = { client_new(c, user(0)), client_new(c, user(0)) };
        sd_bus *other = client_new(c, user(1));
        TestCall call;

        for (size_t i = 0; i < N; i++)
                test_service_call_full(&c->service, clients[i % 2], "Hold", ACTION_HOLD, "", true,
                                       &calls[i]);
        WAIT_UNTIL(c->service.event, test_service_n_authorizing(&c->service) == N);
        test_sync(c->service.event, c->service.bus);
        test_sync(c->service.event, c->polkit);
        g_assert_cmpuint(c->pending->len, >=, CHECKS_QUICK_MAX);
        /* a person takes so long that polkit is asked for others beside them */
        WAIT_UNTIL(c->service.event, c->pending->len == CHECKS_USER_MAX);
        test_sync(c->service.event, c->service.bus);
        test_sync(c->service.event, c->polkit);
        g_assert_cmpuint(c->most, ==, CHECKS_USER_MAX);

        test_service_call(&c->service, other, "Hold", ACTION_HOLD, &call);
        WAIT_UNTIL(c->service.event, is_asked_for(c, other));
        for (size_t i = 0; i < c->pending->len; i++)
                if (strcmp(g_array_index(c->pending, Pending, i).name, test_name(other)) == 0)
                        pending_answer(c, i, true);
        WAIT_UNTIL(c->service.event, call.done);
        g_assert_cmpstr(call.error, ==, NULL);
        test_call_clear(&call);

        answer_all(c, calls, N);
        g_assert_cmpuint(c->n_asked, ==, N + 1);
        g_assert_cmpuint(c->most, ==, CHECKS_USER_MAX + 1);
        sd_bus_flush_close_unref(other);
        for (size_t i = 0; i < ELEMENTSOF(clients); i++)
                sd_bus_flush_close_unref(clients[i]);
}

static void test_96_of_all_users_together(Crowd *c, gconstpointer userdata) {
        enum { USERS = 14, EACH = 10 };
        static TestCall calls[USERS * EACH];
        sd_bus *clients[USERS];

        for (size_t u = 0; u < USERS; u++) {
                clients[u] = client_new(c, user(u));
                for (size_t i = 0; i < EACH; i++)
                        test_service_call_full(&c->service, clients[u], "Hold", ACTION_HOLD, "",
                                               true, &calls[u * EACH + i]);
        }
        WAIT_UNTIL(c->service.event, test_service_n_authorizing(&c->service) == USERS * EACH);
        WAIT_UNTIL(c->service.event, c->pending->len == CHECKS_TOTAL_MAX);
        test_sync(c->service.event, c->service.bus);
        test_sync(c->service.event, c->polkit);
        g_assert_cmpuint(c->most, ==, CHECKS_TOTAL_MAX);

        /* a new user has the next free place */
        sd_bus *late = client_new(c, user(USERS));
        TestCall call;
        test_service_call(&c->service, late, "Hold", ACTION_HOLD, &call);
        WAIT_UNTIL(c->service.event, test_service_n_authorizing(&c->service) == USERS * EACH + 1);
        for (size_t n = 0; !is_asked_for(c, late); n++) {
                unsigned asked = c->n_asked;

                g_assert_cmpuint(n, <, USERS + 1); /* each other user once */
                pending_answer(c, 0, true);
                WAIT_UNTIL(c->service.event, c->n_asked > asked);
        }

        answer_all(c, calls, USERS * EACH);
        answer_all(c, &call, 1);
        g_assert_cmpuint(c->most, ==, CHECKS_TOTAL_MAX);
        for (size_t u = 0; u < USERS; u++)
                sd_bus_flush_close_unref(clients[u]);
        sd_bus_flush_close_unref(late);
}

static int on_silence(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        GPtrArray *calls = userdata;

        if (!sd_bus_message_is_method_call(m, "org.example.Silence", NULL))
                return 0;
        g_ptr_array_add(calls, sd_bus_message_ref(m));
        return 1;
}

static int on_ignored(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return 1;
}

/* The service awaits other replies too, and the bus refuses the 129th call. */
static void test_full_bus_loses_no_check(Crowd *c, gconstpointer userdata) {
        enum { N = 8, OTHERS = 125 };
        GPtrArray *silent = g_ptr_array_new();
        sd_bus *silence = client_new(c, geteuid());
        sd_bus *client = client_new(c, user(0));
        TestCall calls[N];

        g_assert_cmpint(sd_bus_add_filter(silence, NULL, on_silence, silent), >=, 0);
        for (size_t i = 0; i < OTHERS; i++)
                g_assert_cmpint(sd_bus_call_method_async(c->service.bus, NULL, test_name(silence),
                                                         "/", "org.example.Silence", "Wait",
                                                         on_ignored, NULL, NULL),
                                >=, 0);
        WAIT_UNTIL(c->service.event, silent->len == OTHERS);

        for (size_t i = 0; i < N; i++)
                test_service_call(&c->service, client, "Hold", ACTION_HOLD, &calls[i]);
        WAIT_UNTIL(c->service.event, c->pending->len == 128 - OTHERS);
        test_sync(c->service.event, c->service.bus);
        for (size_t i = 0; i < N; i++)
                g_assert_false(calls[i].done);

        /* the places of answered checks suffice for all, one after another */
        answer_all(c, calls, N);
        g_assert_cmpuint(c->n_asked, ==, N);
        g_assert_cmpuint(c->most, <=, 128 - OTHERS);

        /* no place, and no answer that could free one */
        test_service_assert_ok(&c->service, client, "ListEvents", ACTION_NONE);
        for (size_t i = 0; i < 128 - OTHERS; i++)
                g_assert_cmpint(sd_bus_call_method_async(c->service.bus, NULL, test_name(silence),
                                                         "/", "org.example.Silence", "Wait",
                                                         on_ignored, NULL, NULL),
                                >=, 0);
        WAIT_UNTIL(c->service.event, silent->len == 128);
        for (size_t i = 0; i < N; i++)
                test_service_call(&c->service, client, "Hold", ACTION_HOLD, &calls[i]);
        WAIT_UNTIL(c->service.event, test_service_n_authorizing(&c->service) == N);
        test_service_assert_ok(&c->service, client, "ListEvents", ACTION_NONE);
        g_assert_cmpuint(c->pending->len, ==, 0);
        for (size_t i = 0; i < silent->len; i++) {
                g_assert_cmpint(sd_bus_reply_method_return(silent->pdata[i], NULL), >=, 0);
                sd_bus_message_unref(silent->pdata[i]);
        }
        answer_all(c, calls, N);
        g_assert_cmpuint(c->n_asked, ==, 2 * N);

        g_ptr_array_unref(silent);
        sd_bus_flush_close_unref(silence);
        sd_bus_flush_close_unref(client);
}

/* Users who stay are answered once, users who leave do no harm, and the limits hold all the
 * time. */
/* All that is under way has arrived. */
static void crowd_settle(Crowd *c, sd_bus *client) {
        for (int i = 0; i < 3; i++) {
                test_sync(c->service.event, client);
                test_sync(c->service.event, c->service.bus);
                test_sync(c->service.event, c->polkit);
        }
}

/* One answer, for which polkit has worked so long. */
static void answer_late(Crowd *c, uint64_t usec) {
        g_assert_cmpuint(c->pending->len, ==, 1);
        test_clock_forward(usec);
        pending_answer(c, 0, true);
}

enum { WORKED_USEC = CHECK_SLOW_USEC * 4 / 5, N_FREE = CHECKS_FREE_USEC / WORKED_USEC + 1 };

/* A profiler opens one event after the other. */
static void test_a_user_who_awaits_each_answer_does_not_pause(Crowd *c, gconstpointer userdata) {
        sd_bus *client = client_new(c, user(0));

        for (unsigned i = 0; i < 2 * N_FREE; i++) {
                TestCall call;

                test_service_call(&c->service, client, "Hold", ACTION_HOLD, &call);
                crowd_settle(c, client);
                answer_late(c, WORKED_USEC);
                WAIT_UNTIL(c->service.event, call.done);
                test_call_clear(&call);
        }
        sd_bus_flush_close_unref(client);
}

static void test_a_user_with_many_calls_pauses_between_checks(Crowd *c, gconstpointer userdata) {
        enum { N = 2 * N_FREE };
        TestCall calls[N];
        sd_bus *client = client_new(c, user(0));
        unsigned n_pauses = 0;

        for (unsigned i = 0; i < N; i++)
                test_service_call(&c->service, client, "Hold", ACTION_HOLD, &calls[i]);
        for (unsigned i = 0; i < N; i++) {
                crowd_settle(c, client);
                if (c->pending->len == 0) {
                        n_pauses++;
                        test_clock_forward(CHECKS_PAUSE * WORKED_USEC);
                        WAIT_UNTIL(c->service.event, c->pending->len > 0);
                }
                answer_late(c, WORKED_USEC);
                WAIT_UNTIL(c->service.event, calls[i].done);
        }
        g_assert_cmpuint(n_pauses, >=, 1);
        for (unsigned i = 0; i < N; i++)
                test_call_clear(&calls[i]);
        sd_bus_flush_close_unref(client);
}

static void test_comings_and_goings(Crowd *c, gconstpointer userdata) {
        enum { CLIENTS = 40, EACH = 12, USERS = 5 };
        static TestCall calls[CLIENTS][EACH];
        GRand *random = g_rand_new_with_seed(2);
        sd_bus *clients[CLIENTS];
        unsigned n_left = 0;

        for (size_t k = 0; k < CLIENTS; k++) {
                clients[k] = client_new(c, user(k % USERS));
                for (size_t i = 0; i < EACH; i++)
                        test_service_call_full(&c->service, clients[k], "Hold", ACTION_HOLD, "",
                                               g_rand_boolean(random), &calls[k][i]);
        }
        for (int step = 0; step < 300; step++) {
                size_t k = (size_t) g_rand_int_range(random, 0, CLIENTS);

                g_assert_cmpint(sd_event_run(c->service.event, 1000), >=, 0);
                if (c->pending->len > 0 && g_rand_boolean(random))
                        pending_answer(
                                c, (size_t) g_rand_int_range(random, 0, (gint32) c->pending->len),
                                true);
                if (clients[k] && g_rand_int_range(random, 0, 10) == 0) {
                        for (size_t i = 0; i < EACH; i++)
                                test_call_clear(&calls[k][i]);
                        clients[k] = sd_bus_flush_close_unref(clients[k]);
                        n_left++;
                }
        }
        g_assert_cmpuint(n_left, >, 10);
        g_assert_cmpuint(n_left, <, CLIENTS);
        for (size_t k = 0; k < CLIENTS; k++)
                if (clients[k]) {
                        answer_all(c, calls[k], EACH);
                        sd_bus_flush_close_unref(clients[k]);
                }
        WAIT_UNTIL(c->service.event, test_service_n_authorizing(&c->service) == 0);
        WAIT_UNTIL(c->service.event, c->pending->len == 0);
        g_assert_cmpuint(c->most, <=, USERS * CHECKS_USER_MAX);
        g_rand_free(random);
}

#define TEST(name, function) g_test_add("/check/" name, Crowd, NULL, crowd_up, function, crowd_down)

int main(int argc, char *argv[]) {
        if (machine_skips_all(MACHINE_PROC | MACHINE_ROOT)) /* who alone can be several users */
                return 0;
        g_test_init(&argc, &argv, NULL);
        TEST("prompts-of-one-user-delay-no-other", test_prompts_of_one_user_delay_no_other);
        TEST("96-of-all-users-together", test_96_of_all_users_together);
        TEST("full-bus-loses-no-check", test_full_bus_loses_no_check);
        TEST("comings-and-goings", test_comings_and_goings);
        TEST("a-user-who-awaits-each-answer-does-not-pause",
             test_a_user_who_awaits_each_answer_does_not_pause);
        TEST("a-user-with-many-calls-pauses-between-checks",
             test_a_user_with_many_calls_pauses_between_checks);
        return g_test_run();
}

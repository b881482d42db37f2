/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests: a service with peers and auth, whose methods only check permissions.
 *
 * Its methods have the names of real ones, so that they are rows of the real table: Hold,
 * OpenCounters, ListUsers; and Unlisted, which has no row. Each takes the actions to be checked,
 * and a reason.
 */

#include <perfalloc/dbus.h>

#include "service/auth/auth.h"
#include "service/bus/scheduler.h"
#include "service/bus/test-bus.h"

typedef struct TestService TestService;

struct TestService {
        sd_event *event;
        sd_bus *bus;
        const char *name;
        Context context;
        Scheduler *scheduler;
        Auth *auth;
        unsigned n_runs; /* of handlers */
        unsigned n_done; /* that were allowed */
        unsigned n_stale;
        unsigned n_left; /* peers */
        unsigned then;   /* another action that the handler checks after the first */
        uid_t uid;       /* of the last caller */
        pid_t pid;
        size_t n_gids;
};

static inline int test_service_fail(TestService *s, int r, const Refusal *why,
                                    sd_bus_error *error) {
        if (r == AUTH_PENDING)
                return 1;
        if (r == -ESTALE) {
                s->n_stale++;
                return 1;
        }
        if (r < 0)
                return r;
        g_assert_cmpint(r, ==, why->code);
        return sd_bus_error_set(error, refusal_name(r), why->text);
}

static inline int test_service_method(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        TestService *s = userdata;
        Peer *peer = peers_sender(s->context.peers, m);
        Refusal why = REFUSAL_NULL;
        Asked asked = ASKED_NULL;
        const char *reason;
        uint32_t actions;
        int r;

        g_assert_nonnull(peer);
        s->n_runs++;
        s->uid = peer->uid;
        s->pid = peer->pid;
        s->n_gids = peer->n_gids;

        g_assert_cmpint(sd_bus_message_read(m, "us", &actions, &reason), >=, 0);
        asked.reason = reason[0] ? reason : NULL;
        r = auth_check(s->auth, peer, m, actions, &asked, &why);
        if (r == 0 && s->then)
                r = auth_check(s->auth, peer, m, s->then, NULL, &why);
        if (r != 0)
                return test_service_fail(s, r, &why, error);
        s->n_done++;
        return sd_bus_reply_method_return(m, NULL);
}

/* Answers whether the caller has manage, checked twice as by a handler with many objects. */
static inline int test_service_list(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        TestService *s = userdata;
        Peer *peer = peers_sender(s->context.peers, m);
        int r;

        s->n_runs++;
        r = auth_may_manage(s->auth, peer, m);
        if (r < 0)
                return test_service_fail(s, r, NULL, error);
        g_assert_cmpint(auth_may_manage(s->auth, peer, m), ==, r);
        s->n_done++;
        return sd_bus_reply_method_return(m, "b", r);
}

static const sd_bus_vtable test_service_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Hold", "us", NULL, test_service_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("OpenCounters", "us", NULL, test_service_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("OpenEvent", "us", NULL, test_service_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListEvents", "us", NULL, test_service_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Broker", "ush", NULL, test_service_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Unlisted", "us", NULL, test_service_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListUsers", NULL, "b", test_service_list, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static inline void test_service_gone(void *userdata, Peer *peer) {
        TestService *s = userdata;

        g_assert_true(peer->gone);
        s->n_left++;
        auth_forget_peer(s->auth, peer);
}

static inline void test_service_start(TestService *s, const char *address) {
        *s = (TestService){};
        g_assert_cmpint(sd_event_new(&s->event), >=, 0);
        s->bus = test_connect(address, s->event, geteuid());
        s->name = test_name(s->bus);
        s->context = (Context){ .event = s->event, .bus = s->bus };
        g_assert_cmpint(turns_init(&s->context.turns, s->event), >=, 0);
        quota_init(&s->context.quota);
        for (QuotaGood good = 0; good < _QUOTA_GOOD_MAX; good++)
                s->context.quota.limits[good] = UINT64_MAX;
        g_assert_cmpint(scheduler_new(&s->context, test_service_gone, s, &s->scheduler), >=, 0);
        g_assert_cmpint(auth_new(&s->context, &s->auth), >=, 0);
        g_assert_cmpint(sd_bus_add_object_vtable(s->bus, NULL, PERFALLOC_OBJECT_PATH,
                                                 PERFALLOC_MANAGER_INTERFACE, test_service_vtable,
                                                 s),
                        >=, 0);
        test_sync(s->event, s->bus);
}

/* Calls that wait for polkit. */
static inline size_t test_service_n_authorizing(const TestService *s) {
        return requests_n(s->context.requests, REQUEST_AUTHORIZING);
}

static inline void test_service_stop(TestService *s) {
        s->scheduler = scheduler_free(s->scheduler);
        s->auth = auth_free(s->auth);
        quota_done(&s->context.quota);
        turns_done(&s->context.turns);
        s->bus = sd_bus_flush_close_unref(s->bus);
        s->event = sd_event_unref(s->event);
}

static inline void test_service_call_full(TestService *s, sd_bus *client, const char *member,
                                          unsigned actions, const char *reason, bool interactive,
                                          TestCall *call) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        *call = (TestCall){};
        g_assert_cmpint(sd_bus_message_new_method_call(client, &m, s->name, PERFALLOC_OBJECT_PATH,
                                                       PERFALLOC_MANAGER_INTERFACE, member),
                        >=, 0);
        if (strcmp(member, "ListUsers") != 0)
                g_assert_cmpint(sd_bus_message_append(m, "us", actions, reason), >=, 0);
        g_assert_cmpint(sd_bus_message_set_allow_interactive_authorization(m, interactive), >=, 0);
        g_assert_cmpint(sd_bus_call_async(client, &call->slot, m, test_call_done, call, UINT64_MAX),
                        >=, 0);
}

static inline void test_service_call(TestService *s, sd_bus *client, const char *member,
                                     unsigned actions, TestCall *call) {
        test_service_call_full(s, client, member, actions, "", false, call);
}

/* Calls and waits. Returns the name of the error, or NULL; the caller frees it. */
static inline char *test_service_try(TestService *s, sd_bus *client, const char *member,
                                     unsigned actions) {
        TestCall call;
        char *error;

        test_service_call(s, client, member, actions, &call);
        WAIT_UNTIL(s->event, call.done);
        error = g_steal_pointer(&call.error);
        test_call_clear(&call);
        return error;
}

static inline void test_service_assert_ok(TestService *s, sd_bus *client, const char *member,
                                          unsigned actions) {
        g_autofree char *error = test_service_try(s, client, member, actions);

        g_assert_cmpstr(error, ==, NULL);
}

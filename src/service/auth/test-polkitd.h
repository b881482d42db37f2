/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For the tests: a service with peers and auth and methods that do nothing but ask.
 *
 * Its methods have the names of real ones, so that the real table is behind them: Hold,
 * OpenCounters, ListUsers, and Unlisted, which is in no table. Each takes the actions to be asked
 * for and a reason.
 */

#include <perfalloc/dbus.h>

#include "service/auth/auth.h"
#include "service/bus/scheduler.h"
#include "service/bus/test-bus.h"

typedef struct Desk Desk;

struct Desk {
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

static inline int desk_fail(Desk *d, int r, const Refusal *why, sd_bus_error *error) {
        if (r == AUTH_PENDING)
                return 1;
        if (r == -ESTALE) {
                d->n_stale++;
                return 1;
        }
        if (r < 0)
                return r;
        g_assert_cmpint(r, ==, why->code);
        return sd_bus_error_set(error, refusal_name(r), why->text);
}

static inline int desk_method(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Desk *d = userdata;
        Peer *peer = peers_sender(d->context.peers, m);
        Refusal why = REFUSAL_NULL;
        Asked asked = ASKED_NULL;
        const char *reason;
        uint32_t actions;
        int r;

        g_assert_nonnull(peer);
        d->n_runs++;
        d->uid = peer->uid;
        d->pid = peer->pid;
        d->n_gids = peer->n_gids;

        g_assert_cmpint(sd_bus_message_read(m, "us", &actions, &reason), >=, 0);
        asked.reason = reason[0] ? reason : NULL;
        r = auth_check(d->auth, peer, m, actions, &asked, &why);
        if (r == 0 && d->then)
                r = auth_check(d->auth, peer, m, d->then, NULL, &why);
        if (r != 0)
                return desk_fail(d, r, &why, error);
        d->n_done++;
        return sd_bus_reply_method_return(m, NULL);
}

/* Answers whether the caller may manage, asked twice as a handler with many objects would. */
static inline int desk_list(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Desk *d = userdata;
        Peer *peer = peers_sender(d->context.peers, m);
        int r;

        d->n_runs++;
        r = auth_may_manage(d->auth, peer, m);
        if (r < 0)
                return desk_fail(d, r, NULL, error);
        g_assert_cmpint(auth_may_manage(d->auth, peer, m), ==, r);
        d->n_done++;
        return sd_bus_reply_method_return(m, "b", r);
}

static const sd_bus_vtable desk_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Hold", "us", NULL, desk_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("OpenCounters", "us", NULL, desk_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("OpenEvent", "us", NULL, desk_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListEvents", "us", NULL, desk_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Broker", "ush", NULL, desk_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Unlisted", "us", NULL, desk_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListUsers", NULL, "b", desk_list, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static inline void desk_gone(void *userdata, Peer *peer) {
        Desk *d = userdata;

        g_assert_true(peer->gone);
        d->n_left++;
        auth_forget_peer(d->auth, peer);
}

static inline void desk_up(Desk *d, const char *address) {
        *d = (Desk){};
        g_assert_cmpint(sd_event_new(&d->event), >=, 0);
        d->bus = test_connect(address, d->event, geteuid());
        d->name = test_name(d->bus);
        d->context = (Context){ .event = d->event, .bus = d->bus };
        quota_init(&d->context.quota);
        for (QuotaGood good = 0; good < _QUOTA_GOOD_MAX; good++)
                d->context.quota.limits[good] = UINT64_MAX;
        g_assert_cmpint(scheduler_new(&d->context, desk_gone, d, &d->scheduler), >=, 0);
        g_assert_cmpint(auth_new(&d->context, &d->auth), >=, 0);
        g_assert_cmpint(sd_bus_add_object_vtable(d->bus, NULL, PERFALLOC_OBJECT_PATH,
                                                 PERFALLOC_MANAGER_INTERFACE, desk_vtable, d),
                        >=, 0);
        test_sync(d->event, d->bus);
}

/* Calls that wait for polkit. */
static inline size_t desk_n_authorizing(const Desk *d) {
        return requests_n(d->context.requests, REQUEST_AUTHORIZING);
}

static inline void desk_down(Desk *d) {
        d->scheduler = scheduler_free(d->scheduler);
        d->auth = auth_free(d->auth);
        quota_done(&d->context.quota);
        d->bus = sd_bus_flush_close_unref(d->bus);
        d->event = sd_event_unref(d->event);
}

static inline void desk_call_full(Desk *d, sd_bus *client, const char *member, unsigned actions,
                                  const char *reason, bool interactive, TestCall *call) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        *call = (TestCall){};
        g_assert_cmpint(sd_bus_message_new_method_call(client, &m, d->name, PERFALLOC_OBJECT_PATH,
                                                       PERFALLOC_MANAGER_INTERFACE, member),
                        >=, 0);
        if (strcmp(member, "ListUsers") != 0)
                g_assert_cmpint(sd_bus_message_append(m, "us", actions, reason), >=, 0);
        g_assert_cmpint(sd_bus_message_set_allow_interactive_authorization(m, interactive), >=, 0);
        g_assert_cmpint(sd_bus_call_async(client, &call->slot, m, test_call_done, call, UINT64_MAX),
                        >=, 0);
}

static inline void desk_call(Desk *d, sd_bus *client, const char *member, unsigned actions,
                             TestCall *call) {
        desk_call_full(d, client, member, actions, "", false, call);
}

/* Calls and waits: the name of the error, or NULL; to be freed. */
static inline char *desk_try(Desk *d, sd_bus *client, const char *member, unsigned actions) {
        TestCall call;
        char *error;

        desk_call(d, client, member, actions, &call);
        WAIT_UNTIL(d->event, call.done);
        error = g_steal_pointer(&call.error);
        test_call_clear(&call);
        return error;
}

static inline void desk_assert_ok(Desk *d, sd_bus *client, const char *member, unsigned actions) {
        g_autofree char *error = desk_try(d, client, member, actions);

        g_assert_cmpstr(error, ==, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "users-call.h"

#include "service/reply.h"

typedef struct UsersCall UsersCall;

struct UsersCall {
        Service *service;
        sd_bus_message *m;
        Peer *peer;
        bool manages; /* may know other users' commands */
        HelperJob *job;
        QuotaCharge call;
        LIST_ENTRY(UsersCall) calls;
};

static UsersCall *users_call_free(UsersCall *c) {
        if (!c)
                return NULL;
        helper_job_cancel(c->job);
        LIST_REMOVE(c, calls);
        quota_release(&c->call);
        peer_unref(c->peer);
        sd_bus_message_unref(c->m);
        free(c);
        return NULL;
}
DEFINE_CLEANUP(UsersCall *, users_call_free)

void users_calls_forget_peer(Service *s, Peer *peer) {
        UsersCall *c, *next;

        for (c = LIST_FIRST(&s->users_calls); c; c = next) {
                next = LIST_NEXT(c, calls);
                if (c->peer == peer)
                        users_call_free(c);
        }
}

static int users_call_reply(UsersCall *c, const User *users, size_t n_users) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(c->m, &reply);

        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(uussu)");
        for (size_t i = 0; i < n_users && r >= 0; i++) {
                const User *u = &users[i];
                bool seen = c->manages || u->uid == c->peer->uid;

                r = sd_bus_message_append(reply, "(uussu)", (uint32_t) u->pid, (uint32_t) u->uid,
                                          seen ? u->command : "", seen ? u->unit : "",
                                          u->n_descriptors);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static void users_call_scanned(void *userdata, int r, const User *users, size_t n_users,
                               bool complete) {
        UsersCall *c = userdata;

        c->job = NULL;
        if (r == 0)
                r = users_call_reply(c, users, n_users);
        if (r < 0)
                reply_failure_later(c->m, r, NULL);
        users_call_free(c);
}

static int users_call_begin(Service *s, Peer *peer, sd_bus_message *m, bool manages, Refusal *why) {
        _cleanup_(users_call_freep) UsersCall *c = calloc(1, sizeof(UsersCall));
        int r;

        if (!c)
                return -ENOMEM;
        *c = (UsersCall){
                .service = s, .m = sd_bus_message_ref(m), .peer = peer_ref(peer), .manages = manages
        };
        LIST_INSERT_HEAD(&s->users_calls, c, calls);
        r = quota_charge(&s->quota, peer->uid, QUOTA_CALLS, 1, &c->call, why);
        if (r == 0)
                r = helper_scan(s->helper, users_call_scanned, c, &c->job);
        if (r == 0)
                c = NULL;
        return r;
}

int users_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Service *s = userdata;
        Peer *peer = peers_sender(s->peers, m);
        Refusal why = REFUSAL_NULL;
        int manages = peer->uid == 0 ? 1 : bouncer_may_manage(s->bouncer, peer, m);
        int r = manages < 0 ? manages : users_call_begin(s, peer, m, manages > 0, &why);

        return r == 0 ? 1 : reply_failure(r, &why, error);
}

void users_calls_done(Service *s) {
        while (!LIST_EMPTY(&s->users_calls))
                users_call_free(LIST_FIRST(&s->users_calls));
}

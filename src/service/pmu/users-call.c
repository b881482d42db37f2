/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "users-call.h"

#include "service/bus/request.h"
#include "service/util/reply.h"

typedef struct UsersCall {
        Call call;
        bool manages; /* may know other users' commands */
        ReaderJob *job;
} UsersCall;

static void users_call_end(Call *call) {
        UsersCall *c = container_of(call, UsersCall, call);

        reader_job_cancel(c->job);
        call_done(call);
        free(c);
}

static int users_call_reply(UsersCall *c, const User *users, size_t n_users) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(c->call.m, &reply);

        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(uussu)");
        for (size_t i = 0; i < n_users && r >= 0; i++) {
                const User *u = &users[i];
                bool seen = c->manages || u->uid == c->call.peer->uid;

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
                call_fail(&c->call, r, NULL);
        else
                users_call_end(&c->call);
}

static int users_call_begin(Service *s, Peer *peer, sd_bus_message *m, bool manages, Refusal *why) {
        UsersCall *c = calloc(1, sizeof(UsersCall));
        int r;

        if (!c)
                return -ENOMEM;
        c->manages = manages;
        r = call_begin(&c->call, s, peer, m, users_call_end, why);
        if (r == 0)
                r = reader_scan(s->reader, users_call_scanned, c, &c->job);
        if (r != 0)
                users_call_end(&c->call);
        return r;
}

int users_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Service *s = userdata;
        Peer *peer = peers_sender(s->peers, m);
        Refusal why = REFUSAL_NULL;
        int manages = peer->uid == 0 ? 1 : auth_may_manage(s->auth, peer, m);
        int r = manages < 0 ? manages : users_call_begin(s, peer, m, manages > 0, &why);

        return r == 0 ? 1 : reply_failure(r, &why, error);
}

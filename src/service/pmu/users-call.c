/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "users-call.h"

#include "perf/process/procfs.h"
#include "service/auth/auth.h"
#include "service/sibling/reader.h"
#include "service/util/reply.h"

typedef struct UsersCall {
        Request *call;
        bool sees_all; /* also what /proc hides from others */
        ReaderJob *job;
} UsersCall;

static void users_call_end(void *work) {
        UsersCall *c = work;

        reader_job_cancel(c->job);
        request_done(c->call);
        free(c);
}

static int users_call_reply(UsersCall *c, const User *users, size_t n_users) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(c->call->m, &reply);

        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(uussu)");
        for (size_t i = 0; i < n_users && r >= 0; i++) {
                const User *u = &users[i];

                if (c->sees_all || u->uid == c->call->peer->uid)
                        r = sd_bus_message_append(reply, "(uussu)", (uint32_t) u->pid,
                                                  (uint32_t) u->uid, u->command, u->unit,
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
                request_fail(c->call, r, NULL);
        else
                users_call_end(c);
}

static int users_call_begin(Context *context, Peer *peer, sd_bus_message *m, bool sees_all,
                            Refusal *why) {
        UsersCall *c = calloc(1, sizeof(UsersCall));
        int r;

        if (!c)
                return -ENOMEM;
        c->sees_all = sees_all;
        r = request_begin(context, peer, m, c, users_call_end, &c->call, why);
        if (r == 0)
                r = reader_scan(context->reader, users_call_scanned, c, &c->job);
        if (r != 0)
                users_call_end(c);
        return r;
}

int users_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Context *context = userdata;
        Peer *peer = peers_sender(context->peers, m);
        Refusal why = REFUSAL_NULL;
        int sees_all = peer->root || !procfs_hides() ? 1 : auth_may_manage(context->auth, peer, m);
        int r = sees_all < 0 ? sees_all : users_call_begin(context, peer, m, sees_all > 0, &why);

        return r == 0 ? 1 : reply_failure(r, &why, error);
}

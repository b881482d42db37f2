/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "persistent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "service/auth/auth.h"
#include "service/counter/counter-user.h"
#include "service/counter/open-request.h"
#include "service/util/reply.h"

const char *persistent_id(const Counter *c, char buffer[static PERSISTENT_ID_SIZE]) {
        buffer[0] = '\0';
        if (c->set->persistent)
                (void) snprintf(buffer, PERSISTENT_ID_SIZE, "%" PRIu64, c->object.id);
        return buffer;
}

static int persistent_find(Counters *counters, const char *id, Counter **ret, Refusal *why) {
        char again[PERSISTENT_ID_SIZE];
        Counter *c = counter_find(counters, strtoull(id, NULL, 10));

        /* only canonical numbers: not "007" or " 7" */
        if (!c || !c->set->persistent || strcmp(persistent_id(c, again), id) != 0)
                return refuse(why, REFUSAL_UNKNOWN_OBJECT,
                              "there is no persistent counter '%.64s' (ListPersistent lists them)",
                              id);
        *ret = c;
        return 0;
}

/* ---- Persist and Adopt ---- */

int persist_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counter *c = userdata;
        Counters *counters = c->set->counters;
        Peer *peer = peers_sender(counters->context->peers, m);
        char id[PERSISTENT_ID_SIZE];
        Refusal why = REFUSAL_NULL;
        Asked asked;
        int r = auth_check_owner(counters->context->auth, peer, m, c->set->uid, c->object.path,
                                 &why);

        if (r == 0 && c->set->configured)
                r = refuse(&why, REFUSAL_NOT_PERMITTED,
                           "%s is a configured monitor: it stays as long as it is configured",
                           c->object.path);
        counter_set_ask(c->set, &asked);
        if (r == 0)
                r = auth_check(counters->context->auth, peer, m, ACTION_PERSIST, &asked, &why);
        if (r != 0)
                return reply_failure(r, &why, error);
        counter_set_persist(c->set, true);
        return sd_bus_reply_method_return(m, "s", persistent_id(c, id));
}

int adopt_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counter *c = userdata;
        Counters *counters = c->set->counters;
        Peer *peer = peers_sender(counters->context->peers, m);
        Refusal why = REFUSAL_NULL;
        int r = auth_check_owner(counters->context->auth, peer, m, c->set->uid, c->object.path,
                                 &why);

        if (r == 0 && c->set->configured)
                r = refuse(&why, REFUSAL_NOT_PERMITTED,
                           "%s is a configured monitor: it belongs to no connection",
                           c->object.path);
        if (r == 0)
                r = counter_set_add_user(c->set, peer, &why);
        if (r != 0)
                return reply_failure(r, &why, error);
        counter_set_persist(c->set, false);
        return sd_bus_reply_method_return(m, NULL);
}

/* ---- OpenPersistent ---- */

/* A reading user is authorized as if they opened the counter and its whole group now, all of which
 * they may read. They cannot prove which process it counts, or has counted until that ended, so it
 * takes count-other. */
static int persistent_authorize(Counters *counters, Peer *peer, sd_bus_message *m,
                                const Counter *counter, Refusal *why) {
        const Group *g = counter->set->group;
        Asked asked;

        counter_set_ask(counter->set, &asked);
        return auth_check(counters->context->auth, peer, m,
                          events_actions(g->events, g->n_events, g->scope, true), &asked, why);
}

int persistent_open_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counters *counters = userdata;
        Peer *peer = peers_sender(counters->context->peers, m);
        Refusal why = REFUSAL_NULL;
        Counter *counter = NULL;
        const char *id;
        int r;

        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = sd_bus_message_read_basic(m, 's', &id);
        if (r >= 0)
                r = persistent_find(counters, id, &counter, &why);
        if (r == 0 && !peer->root && peer->uid != counter->set->uid)
                r = persistent_authorize(counters, peer, m, counter, &why);
        if (r == 0 && peer->gone)
                r = -ESTALE;
        if (r == 0)
                r = counter_set_add_user(counter->set, peer, &why);
        return r == 0 ? sd_bus_reply_method_return(m, "o", counter->object.path)
                      : reply_failure(r, &why, error);
}

/* ---- ListPersistent ---- */

typedef struct Listing {
        sd_bus_message *reply;
        const Peer *peer;
        bool manages;
        bool foreign; /* one of them is another user's */
        int r;
} Listing;

static void listing_look(void *userdata, Object *o) {
        const Counter *c = counter_of_object(o);
        Listing *l = userdata;

        l->foreign |= c->set->persistent && c->set->uid != l->peer->uid;
}

static void listing_append(void *userdata, Object *o) {
        const Counter *c = counter_of_object(o);
        Listing *l = userdata;
        char id[PERSISTENT_ID_SIZE];
        bool seen;

        if (l->r < 0 || !c->set->persistent)
                return;
        seen = l->manages || c->set->uid == l->peer->uid;
        l->r = sd_bus_message_append(l->reply, "(sos)", persistent_id(c, id), c->object.path,
                                     seen ? c->set->group->events[c->event].name : "");
}

int persistent_list_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Counters *counters = userdata;
        Listing l = { .peer = peers_sender(counters->context->peers, m) };
        int r = 0;

        objects_walk(&counters->objects, listing_look, &l);
        l.manages = l.peer->root;
        if (l.foreign && !l.manages) {
                /* polkit is asked only if the answer makes a difference */
                r = auth_may_manage(counters->context->auth,
                                    peers_sender(counters->context->peers, m), m);
                l.manages = r > 0;
        }
        if (r >= 0)
                r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(sos)");
        if (r >= 0) {
                l.reply = reply;
                objects_walk(&counters->objects, listing_append, &l);
                r = l.r < 0 ? l.r : sd_bus_message_close_container(reply);
        }
        return r < 0 ? reply_failure(r, NULL, error) : sd_bus_send(NULL, reply, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-user.h"

#include "service/auth/auth.h"
#include "service/counter/counter-signals.h"
#include "service/counter/counter-store.h"

static CounterUser *counter_set_find_user(const CounterSet *set, const Peer *peer) {
        CounterUser *u;

        LIST_FOREACH (u, &set->users, users)
                if (u->peer == peer)
                        return u;
        return NULL;
}

bool counter_set_has_user(const CounterSet *set, const Peer *peer) {
        return counter_set_find_user(set, peer);
}

int counter_set_add_user(CounterSet *set, Peer *peer, Refusal *why) {
        CounterUser *u;
        int r;

        if (counter_set_has_user(set, peer))
                return 0;
        u = calloc(1, sizeof(CounterUser));
        if (!u)
                return -ENOMEM;
        /* the owner is charged for the counters themselves */
        r = peer->uid == set->uid ? 0
                                  : quota_charge(&set->context->quota, peer->uid, QUOTA_COUNTERS, 1,
                                                 &u->charge, why);
        if (r != 0) {
                free(u);
                return r;
        }
        u->peer = peer_ref(peer);
        LIST_INSERT_HEAD(&set->users, u, users);
        counter_set_save(set);
        return 0;
}

static void counter_set_drop_user(CounterUser *u) {
        LIST_REMOVE(u, users);
        quota_release(&u->charge);
        peer_unref(u->peer);
        free(u);
}

void counter_set_drop_users(CounterSet *set) {
        while (!LIST_EMPTY(&set->users))
                counter_set_drop_user(LIST_FIRST(&set->users));
}

bool counter_set_forget_user(CounterSet *set, const Peer *peer) {
        CounterUser *u = counter_set_find_user(set, peer);

        if (!u)
                return false;
        counter_set_drop_user(u);
        if (LIST_EMPTY(&set->users) && !set->persistent)
                return true;
        counter_set_save(set);
        return false;
}

void counter_set_persist(CounterSet *set, bool persistent) {
        Counter *c;

        if (set->persistent == persistent)
                return;
        set->persistent = persistent;
        counter_set_save(set);
        LIST_FOREACH (c, &set->members, members)
                counter_changed(c, COUNTER_CHANGED_PERSISTENT);
}

int counter_check_reading(Counter *c, Peer *peer, sd_bus_message *m, Refusal *why) {
        if (counter_set_has_user(c->set, peer))
                return peer->gone ? -ESTALE : 0;
        return auth_check_owner(c->set->context->auth, peer, m, c->set->uid, c->object.path, why);
}

int counter_find_readable(Counters *counters, Peer *peer, sd_bus_message *m, const char *path,
                          Counter **ret, Refusal *why) {
        Counter *c = counter_find_path(counters, path);
        int r;

        if (!c)
                return refuse(why, REFUSAL_UNKNOWN_OBJECT, "there is no counter '%.64s'", path);
        r = counter_check_reading(c, peer, m, why);
        if (r == 0)
                *ret = c;
        return r;
}

/* The owner of the targets; of several, nobody's. */
static uid_t counter_set_target_uid(const CounterSet *set) {
        const Group *g = set->group;

        for (size_t i = 1; i < g->n_targets; i++)
                if (g->targets[i].uid != g->targets[0].uid)
                        return ASKED_NOBODY;
        return g->n_targets > 0 ? g->targets[0].uid : ASKED_NOBODY;
}

void counter_set_ask(const CounterSet *set, Asked *ret) {
        *ret = ASKED_NULL;
        asked_add_events(ret, set->group->events, set->group->n_events);
        ret->mode = "counting";
        ret->scope = group_scope_name(set->group->scope);
        ret->target = counter_set_target_uid(set);
        if (*set->cpus)
                asked_add(ret->cpus, set->cpus);
}

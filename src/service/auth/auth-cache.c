/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "auth-cache.h"

#include <time.h>

struct AuthCacheEntry {
        TAILQ_ENTRY(AuthCacheEntry) entry;
        Peer *peer;
        Action action;
        Details details;
        uint64_t until; /* CLOCK_MONOTONIC, µs */
};

static uint64_t auth_cache_now(const AuthCache *c) {
        uint64_t now = 0;

        (void) sd_event_now(sd_event_source_get_event(c->timer), CLOCK_MONOTONIC, &now);
        return now;
}

static void auth_cache_drop(AuthCache *c, AuthCacheEntry *e) {
        TAILQ_REMOVE(&c->list, e, entry);
        c->n--;
        peer_unref(e->peer);
        free(e);
}

/* Drops expired entries, and sets the timer to the next expiry. */
static void auth_cache_expire(AuthCache *c) {
        uint64_t now = auth_cache_now(c);
        AuthCacheEntry *first;

        while ((first = TAILQ_FIRST(&c->list)) && first->until <= now)
                auth_cache_drop(c, first);

        if (first && sd_event_source_set_time(c->timer, first->until) >= 0)
                (void) sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
        else
                (void) sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        auth_cache_expire(userdata);
        return 0;
}

int auth_cache_init(AuthCache *c, sd_event *event) {
        int r;

        *c = (AuthCache){};
        TAILQ_INIT(&c->list);
        r = sd_event_add_time(event, &c->timer, CLOCK_MONOTONIC, 0, USEC_PER_SEC, on_time, c);
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
}

void auth_cache_done(AuthCache *c) {
        auth_cache_clear(c);
        c->timer = sd_event_source_disable_unref(c->timer);
}

static AuthCacheEntry *auth_cache_find(AuthCache *c, const Peer *peer, Action action,
                                       const Details *details) {
        AuthCacheEntry *e;

        TAILQ_FOREACH (e, &c->list, entry)
                if (e->peer == peer && e->action == action && details_equal(&e->details, details))
                        return e;
        return NULL;
}

bool auth_cache_have(AuthCache *c, const Peer *peer, Action action, const Details *details) {
        AuthCacheEntry *e;

        if (!(action & ACTIONS_KEPT) || TAILQ_EMPTY(&c->list))
                return false;
        e = auth_cache_find(c, peer, action, details);
        return e && auth_cache_now(c) < e->until;
}

/* A user with many entries drops only their own. */
static void auth_cache_make_room(AuthCache *c, uid_t uid) {
        AuthCacheEntry *e, *oldest = NULL;
        size_t n = 0;

        TAILQ_FOREACH (e, &c->list, entry)
                if (e->peer->uid == uid) {
                        oldest = oldest ?: e;
                        n++;
                }
        if (n >= AUTH_CACHE_USER_MAX)
                auth_cache_drop(c, oldest);
        else if (c->n >= AUTH_CACHE_MAX)
                auth_cache_drop(c, TAILQ_FIRST(&c->list));
}

void auth_cache_keep(AuthCache *c, Peer *peer, Action action, const Details *details) {
        AuthCacheEntry *e;

        if (!(action & ACTIONS_KEPT))
                return;
        e = auth_cache_find(c, peer, action, details);
        if (e)
                auth_cache_drop(c, e);
        auth_cache_make_room(c, peer->uid);

        e = malloc(sizeof(*e));
        if (!e)
                return;
        *e = (AuthCacheEntry){
                .peer = peer_ref(peer),
                .action = action,
                .details = *details,
                .until = auth_cache_now(c) + AUTH_CACHE_USEC,
        };
        TAILQ_INSERT_TAIL(&c->list, e, entry);
        c->n++;
        auth_cache_expire(c);
}

void auth_cache_forget_peer(AuthCache *c, const Peer *peer) {
        AuthCacheEntry *e, *next;

        for (e = TAILQ_FIRST(&c->list); e; e = next) {
                next = TAILQ_NEXT(e, entry);
                if (e->peer == peer)
                        auth_cache_drop(c, e);
        }
}

void auth_cache_clear(AuthCache *c) {
        while (!TAILQ_EMPTY(&c->list))
                auth_cache_drop(c, TAILQ_FIRST(&c->list));
}

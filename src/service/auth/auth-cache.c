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

static void consent_drop(AuthCache *c, AuthCacheEntry *consent) {
        TAILQ_REMOVE(&c->list, consent, entry);
        c->n--;
        peer_unref(consent->peer);
        free(consent);
}

/* Drops what is over and sets the timer to what is next. */
static void auth_cache_expire(AuthCache *c) {
        uint64_t now = auth_cache_now(c);
        AuthCacheEntry *first;

        while ((first = TAILQ_FIRST(&c->list)) && first->until <= now)
                consent_drop(c, first);

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
        AuthCacheEntry *consent;

        TAILQ_FOREACH (consent, &c->list, entry)
                if (consent->peer == peer && consent->action == action &&
                    details_equal(&consent->details, details))
                        return consent;
        return NULL;
}

bool auth_cache_have(AuthCache *c, const Peer *peer, Action action, const Details *details) {
        AuthCacheEntry *consent;

        if (!(action & ACTIONS_KEPT) || TAILQ_EMPTY(&c->list))
                return false;
        consent = auth_cache_find(c, peer, action, details);
        return consent && auth_cache_now(c) < consent->until;
}

/* Nobody pushes out what others were told. */
static void auth_cache_make_room(AuthCache *c, uid_t uid) {
        AuthCacheEntry *consent, *oldest = NULL;
        size_t n = 0;

        TAILQ_FOREACH (consent, &c->list, entry)
                if (consent->peer->uid == uid) {
                        oldest = oldest ?: consent;
                        n++;
                }
        if (n >= AUTH_CACHE_USER_MAX)
                consent_drop(c, oldest);
        else if (c->n >= AUTH_CACHE_MAX)
                consent_drop(c, TAILQ_FIRST(&c->list));
}

void auth_cache_keep(AuthCache *c, Peer *peer, Action action, const Details *details) {
        AuthCacheEntry *consent;

        if (!(action & ACTIONS_KEPT))
                return;
        consent = auth_cache_find(c, peer, action, details);
        if (consent)
                consent_drop(c, consent);
        auth_cache_make_room(c, peer->uid);

        consent = malloc(sizeof(*consent));
        if (!consent)
                return;
        *consent = (AuthCacheEntry){
                .peer = peer_ref(peer),
                .action = action,
                .details = *details,
                .until = auth_cache_now(c) + AUTH_CACHE_USEC,
        };
        TAILQ_INSERT_TAIL(&c->list, consent, entry);
        c->n++;
        auth_cache_expire(c);
}

void auth_cache_forget_peer(AuthCache *c, const Peer *peer) {
        AuthCacheEntry *consent, *next;

        for (consent = TAILQ_FIRST(&c->list); consent; consent = next) {
                next = TAILQ_NEXT(consent, entry);
                if (consent->peer == peer)
                        consent_drop(c, consent);
        }
}

void auth_cache_clear(AuthCache *c) {
        while (!TAILQ_EMPTY(&c->list))
                consent_drop(c, TAILQ_FIRST(&c->list));
}

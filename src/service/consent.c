/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "consent.h"

#include <time.h>

struct Consent {
        TAILQ_ENTRY(Consent) entry;
        Peer *peer;
        Action action;
        Details details;
        uint64_t until; /* CLOCK_MONOTONIC, µs */
};

static uint64_t consents_now(const Consents *c) {
        uint64_t now = 0;

        (void) sd_event_now(sd_event_source_get_event(c->timer), CLOCK_MONOTONIC, &now);
        return now;
}

static void consent_drop(Consents *c, Consent *consent) {
        TAILQ_REMOVE(&c->list, consent, entry);
        c->n--;
        peer_unref(consent->peer);
        free(consent);
}

/* Drops what is over and sets the timer to what is next. */
static void consents_expire(Consents *c) {
        uint64_t now = consents_now(c);
        Consent *first;

        while ((first = TAILQ_FIRST(&c->list)) && first->until <= now)
                consent_drop(c, first);

        if (first && sd_event_source_set_time(c->timer, first->until) >= 0)
                (void) sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
        else
                (void) sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        consents_expire(userdata);
        return 0;
}

int consents_init(Consents *c, sd_event *event) {
        int r;

        *c = (Consents){};
        TAILQ_INIT(&c->list);
        r = sd_event_add_time(event, &c->timer, CLOCK_MONOTONIC, 0, USEC_PER_SEC, on_time, c);
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
}

void consents_done(Consents *c) {
        consents_clear(c);
        c->timer = sd_event_source_disable_unref(c->timer);
}

static Consent *consents_find(Consents *c, const Peer *peer, Action action,
                              const Details *details) {
        Consent *consent;

        TAILQ_FOREACH (consent, &c->list, entry)
                if (consent->peer == peer && consent->action == action &&
                    details_equal(&consent->details, details))
                        return consent;
        return NULL;
}

bool consents_have(Consents *c, const Peer *peer, Action action, const Details *details) {
        Consent *consent;

        if (!(action & ACTIONS_KEPT) || TAILQ_EMPTY(&c->list))
                return false;
        consent = consents_find(c, peer, action, details);
        return consent && consents_now(c) < consent->until;
}

/* Nobody pushes out what others were told. */
static void consents_make_room(Consents *c, uid_t uid) {
        Consent *consent, *oldest = NULL;
        size_t n = 0;

        TAILQ_FOREACH (consent, &c->list, entry)
                if (consent->peer->uid == uid) {
                        oldest = oldest ?: consent;
                        n++;
                }
        if (n >= CONSENTS_USER_MAX)
                consent_drop(c, oldest);
        else if (c->n >= CONSENTS_MAX)
                consent_drop(c, TAILQ_FIRST(&c->list));
}

void consents_keep(Consents *c, Peer *peer, Action action, const Details *details) {
        Consent *consent;

        if (!(action & ACTIONS_KEPT))
                return;
        consent = consents_find(c, peer, action, details);
        if (consent)
                consent_drop(c, consent);
        consents_make_room(c, peer->uid);

        consent = malloc(sizeof(*consent));
        if (!consent)
                return;
        *consent = (Consent){
                .peer = peer_ref(peer),
                .action = action,
                .details = *details,
                .until = consents_now(c) + CONSENT_KEPT_USEC,
        };
        TAILQ_INSERT_TAIL(&c->list, consent, entry);
        c->n++;
        consents_expire(c);
}

void consents_forget_peer(Consents *c, const Peer *peer) {
        Consent *consent, *next;

        for (consent = TAILQ_FIRST(&c->list); consent; consent = next) {
                next = TAILQ_NEXT(consent, entry);
                if (consent->peer == peer)
                        consent_drop(c, consent);
        }
}

void consents_clear(Consents *c) {
        while (!TAILQ_EMPTY(&c->list))
                consent_drop(c, TAILQ_FIRST(&c->list));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "auth.h"

#include <assert.h>
#include <time.h>

#include "service/auth/audit.h"
#include "service/auth/auth-request.h"

struct Auth {
        sd_bus *bus;
        AuthRequests questions;
        sd_bus_slot *filter;
        sd_bus_slot *changed;
        sd_event_source *sweep; /* after a handler has run again */
};

void auth_forget_peer(Auth *b, Peer *peer) {
        AuthRequest *q, *next;

        for (size_t i = 0; i < _AUTH_REQUEST_STATE_MAX; i++)
                for (q = TAILQ_FIRST(&b->questions.lists[i]); q; q = next) {
                        next = TAILQ_NEXT(q, entry);
                        if (q->peer == peer)
                                auth_request_free(q);
                }
        auth_cache_forget_peer(&b->questions.consents, peer);
}

/* The message of an answered question is about to be handled: what is known of it is needed until
 * then. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Auth *b = userdata;
        AuthRequest *q;

        if (b->questions.n[AUTH_REQUEST_ANSWERED] == 0)
                return 0;
        q = auth_request_find(&b->questions, m);
        if (q && q->state == AUTH_REQUEST_ANSWERED) {
                auth_request_set_state(q, AUTH_REQUEST_RUNNING);
                (void) sd_event_source_set_enabled(b->sweep, SD_EVENT_ONESHOT);
        }
        return 0;
}

static int on_sweep(sd_event_source *source, void *userdata) {
        Auth *b = userdata;

        while (!TAILQ_EMPTY(&b->questions.lists[AUTH_REQUEST_RUNNING]))
                auth_request_free(TAILQ_FIRST(&b->questions.lists[AUTH_REQUEST_RUNNING]));
        return 0;
}

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Auth *b = userdata;

        auth_cache_clear(&b->questions.consents);
        return 0;
}

static int screen(const Peer *peer, sd_bus_message *m, unsigned actions, Refusal *why) {
        const char *interface = sd_bus_message_get_interface(m);
        const char *member = sd_bus_message_get_member(m);
        const MethodActions *row = method_actions(interface, member);

        if (peer->gone)
                return -ESTALE;
        if (!row)
                return refuse(
                        why, REFUSAL_ACCESS_DENIED,
                        "%s.%s is not in the table of methods and their polkit actions, and so is "
                        "refused to everybody",
                        interface ? interface : "(no interface)", member);
        if (actions & ~row->actions)
                return refuse(why, REFUSAL_ACCESS_DENIED,
                              "%s.%s asks for a polkit action that the table does not have for it "
                              "(0x%x), "
                              "and so is refused to everybody",
                              interface, member, actions & ~row->actions);
        return 0;
}

static unsigned consented(Auth *b, const Peer *peer, unsigned actions, const Details *details) {
        unsigned set = 0;

        for (unsigned left = actions & ACTIONS_KEPT; left; left &= left - 1)
                if (auth_cache_have(&b->questions.consents, peer, left & -left, details))
                        set |= left & -left;
        return set;
}

static int auth_ask(Auth *b, Peer *peer, sd_bus_message *m, unsigned actions, const char *reason,
                    bool quiet, Refusal *why) {
        AuthRequest *q = auth_request_find(&b->questions, m);
        Details details;
        int r;

        if (q) {
                if (q->state == AUTH_REQUEST_ASKING)
                        return AUTH_PENDING;
                if (q->fault < 0)
                        return q->fault;
                actions &= ~q->granted;
                if (quiet && actions & (q->denied | q->refused))
                        return REFUSAL_ACCESS_DENIED;
                if (actions & q->refused)
                        return refuse(why, q->why.code, "%s", q->why.text);
        }
        if (actions == 0)
                return 0;

        details_fill(&details, peer->uid, peer->pid, reason);
        actions &= ~consented(b, peer, actions, &details);
        if (actions == 0)
                return 0;

        if (!q) {
                r = auth_request_new(&b->questions, peer, m, &q);
                if (r < 0)
                        return r;
        }
        r = auth_request_start(q, actions, &details, quiet, why);
        return r == 0 ? AUTH_PENDING : r;
}

int auth_check(Auth *b, Peer *peer, sd_bus_message *m, unsigned actions, const char *reason,
               Refusal *why) {
        int r;

        r = screen(peer, m, actions, why);
        if (r != 0 || peer->uid == 0 || actions == ACTION_NONE)
                return r;
        r = auth_ask(b, peer, m, actions, reason, false, why);
        if (r == REFUSAL_ACCESS_DENIED)
                denial_log(peer, actions, why);
        return r;
}

int auth_may_manage(Auth *b, Peer *peer, sd_bus_message *m) {
        int r;

        r = screen(peer, m, ACTION_MANAGE, NULL);
        if (r == 0 && peer->uid != 0)
                r = auth_ask(b, peer, m, ACTION_MANAGE, NULL, true, NULL);
        return r < 0 ? r : r == 0;
}

void auth_set_waiting_max(Auth *b, unsigned max) {
        b->questions.checks.queue.waiting_max = max;
}

bool auth_knows(Auth *b, sd_bus_message *m) {
        return auth_request_find(&b->questions, m);
}

uint64_t auth_age_usec(Auth *b, sd_bus_message *m) {
        const AuthRequest *q = auth_request_find(&b->questions, m);
        uint64_t now = 0;

        if (q)
                (void) sd_event_now(sd_bus_get_event(b->bus), CLOCK_MONOTONIC, &now);
        return q && now > q->since_usec ? now - q->since_usec : 0;
}

size_t auth_n_waiting(const Auth *b) {
        return b->questions.n[AUTH_REQUEST_ASKING] + b->questions.n[AUTH_REQUEST_STUCK];
}

static int auth_add_sweep(Auth *b) {
        int r;

        r = sd_event_add_defer(sd_bus_get_event(b->bus), &b->sweep, on_sweep, b);
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(b->sweep, SD_EVENT_OFF);
}

int auth_new(sd_bus *bus, Auth **ret) {
        Auth *b;
        int r;

        assert(sd_bus_get_event(bus));
        b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        b->bus = sd_bus_ref(bus);
        r = auth_requests_init(&b->questions, bus);
        if (r >= 0)
                r = auth_add_sweep(b);
        if (r >= 0)
                r = sd_bus_add_filter(bus, &b->filter, on_message, b);
        if (r >= 0)
                r = polkit_watch(bus, on_changed, b, &b->changed);
        if (r < 0) {
                auth_free(b);
                return r;
        }
        *ret = b;
        return 0;
}

Auth *auth_free(Auth *b) {
        if (!b)
                return NULL;

        auth_requests_done(&b->questions);
        sd_bus_slot_unref(b->filter);
        sd_bus_slot_unref(b->changed);
        sd_event_source_disable_unref(b->sweep);
        sd_bus_unref(b->bus);
        free(b);
        return NULL;
}

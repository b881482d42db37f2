/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bouncer.h"

#include <assert.h>
#include <time.h>

#include "service/denial.h"
#include "service/question.h"

struct Bouncer {
        sd_bus *bus;
        Questions questions;
        sd_bus_slot *filter;
        sd_bus_slot *changed;
        sd_event_source *sweep; /* after a handler has run again */
};

void bouncer_forget_peer(Bouncer *b, Peer *peer) {
        Question *q, *next;

        for (size_t i = 0; i < _QUESTION_STATE_MAX; i++)
                for (q = TAILQ_FIRST(&b->questions.lists[i]); q; q = next) {
                        next = TAILQ_NEXT(q, entry);
                        if (q->peer == peer)
                                question_free(q);
                }
        consents_forget_peer(&b->questions.consents, peer);
}

/* The message of an answered question is about to be handled: what is known of it is needed until
 * then. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Bouncer *b = userdata;
        Question *q;

        if (b->questions.n[QUESTION_ANSWERED] == 0)
                return 0;
        q = question_find(&b->questions, m);
        if (q && q->state == QUESTION_ANSWERED) {
                question_set_state(q, QUESTION_RUNNING);
                (void) sd_event_source_set_enabled(b->sweep, SD_EVENT_ONESHOT);
        }
        return 0;
}

static int on_sweep(sd_event_source *source, void *userdata) {
        Bouncer *b = userdata;

        while (!TAILQ_EMPTY(&b->questions.lists[QUESTION_RUNNING]))
                question_free(TAILQ_FIRST(&b->questions.lists[QUESTION_RUNNING]));
        return 0;
}

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Bouncer *b = userdata;

        consents_clear(&b->questions.consents);
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

static unsigned consented(Bouncer *b, const Peer *peer, unsigned actions, const Details *details) {
        unsigned set = 0;

        for (unsigned left = actions & ACTIONS_KEPT; left; left &= left - 1)
                if (consents_have(&b->questions.consents, peer, left & -left, details))
                        set |= left & -left;
        return set;
}

static int bouncer_ask(Bouncer *b, Peer *peer, sd_bus_message *m, unsigned actions,
                       const char *reason, bool quiet, Refusal *why) {
        Question *q = question_find(&b->questions, m);
        Details details;
        int r;

        if (q) {
                if (q->state == QUESTION_ASKING)
                        return BOUNCER_PENDING;
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
                r = question_new(&b->questions, peer, m, &q);
                if (r < 0)
                        return r;
        }
        r = question_start(q, actions, &details, quiet, why);
        return r == 0 ? BOUNCER_PENDING : r;
}

int bouncer_check(Bouncer *b, Peer *peer, sd_bus_message *m, unsigned actions, const char *reason,
                  Refusal *why) {
        int r;

        r = screen(peer, m, actions, why);
        if (r != 0 || peer->uid == 0 || actions == ACTION_NONE)
                return r;
        r = bouncer_ask(b, peer, m, actions, reason, false, why);
        if (r == REFUSAL_ACCESS_DENIED)
                denial_log(peer, actions, why);
        return r;
}

int bouncer_may_manage(Bouncer *b, Peer *peer, sd_bus_message *m) {
        int r;

        r = screen(peer, m, ACTION_MANAGE, NULL);
        if (r == 0 && peer->uid != 0)
                r = bouncer_ask(b, peer, m, ACTION_MANAGE, NULL, true, NULL);
        return r < 0 ? r : r == 0;
}

void bouncer_set_waiting_max(Bouncer *b, unsigned max) {
        b->questions.checks.queue.waiting_max = max;
}

bool bouncer_knows(Bouncer *b, sd_bus_message *m) {
        return question_find(&b->questions, m);
}

uint64_t bouncer_age_usec(Bouncer *b, sd_bus_message *m) {
        const Question *q = question_find(&b->questions, m);
        uint64_t now = 0;

        if (q)
                (void) sd_event_now(sd_bus_get_event(b->bus), CLOCK_MONOTONIC, &now);
        return q && now > q->since_usec ? now - q->since_usec : 0;
}

size_t bouncer_n_waiting(const Bouncer *b) {
        return b->questions.n[QUESTION_ASKING] + b->questions.n[QUESTION_STUCK];
}

static int bouncer_add_sweep(Bouncer *b) {
        int r;

        r = sd_event_add_defer(sd_bus_get_event(b->bus), &b->sweep, on_sweep, b);
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(b->sweep, SD_EVENT_OFF);
}

int bouncer_new(sd_bus *bus, Bouncer **ret) {
        Bouncer *b;
        int r;

        assert(sd_bus_get_event(bus));
        b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        b->bus = sd_bus_ref(bus);
        r = questions_init(&b->questions, bus);
        if (r >= 0)
                r = bouncer_add_sweep(b);
        if (r >= 0)
                r = sd_bus_add_filter(bus, &b->filter, on_message, b);
        if (r >= 0)
                r = polkit_watch(bus, on_changed, b, &b->changed);
        if (r < 0) {
                bouncer_free(b);
                return r;
        }
        *ret = b;
        return 0;
}

Bouncer *bouncer_free(Bouncer *b) {
        if (!b)
                return NULL;

        questions_done(&b->questions);
        sd_bus_slot_unref(b->filter);
        sd_bus_slot_unref(b->changed);
        sd_event_source_disable_unref(b->sweep);
        sd_bus_unref(b->bus);
        free(b);
        return NULL;
}

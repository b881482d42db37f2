/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bouncer.h"

#include <assert.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "service/check.h"
#include "service/consent.h"

typedef struct Question Question;

typedef enum QuestionState {
        QUESTION_NEW,
        QUESTION_ASKING,   /* polkit is being asked */
        QUESTION_ANSWERED, /* the message is in the queue again */
        QUESTION_RUNNING,  /* its handler runs again, or has just done so */
        _QUESTION_STATE_MAX,
} QuestionState;

/* One call and what polkit says to it, one check after the other. */
struct Question {
        Bouncer *bouncer;
        TAILQ_ENTRY(Question) entry;
        QuestionState state;
        Peer *peer;
        sd_bus_message *m;
        Details details;
        unsigned todo;    /* actions to be asked for, the lowest bit is next */
        bool quiet;       /* never a prompt, and a no is no refusal */
        bool prompt;      /* the check under way may prompt */
        Check *check;     /* the one under way */
        unsigned granted; /* what is known */
        unsigned denied;  /* quietly */
        unsigned refused; /* one bit, with its words in why */
        Refusal why;
        int fault;
};

TAILQ_HEAD(QuestionList, Question);

struct Bouncer {
        sd_bus *bus;
        Checks checks;
        Consents consents;
        void *by_message; /* tree of Question */
        struct QuestionList lists[_QUESTION_STATE_MAX];
        size_t n[_QUESTION_STATE_MAX];
        sd_bus_slot *filter;
        sd_bus_slot *changed;
        sd_event_source *sweep; /* after a handler has run again */
};

static int question_compare(const void *a, const void *b) {
        uintptr_t x = (uintptr_t)((const Question *)a)->m, y = (uintptr_t)((const Question *)b)->m;

        return (x > y) - (x < y);
}

static Question *question_find(Bouncer *b, sd_bus_message *m) {
        Question **found = tfind(&(Question){ .m = m }, &b->by_message, question_compare);

        return found ? *found : NULL;
}

static void question_set_state(Question *q, QuestionState state) {
        Bouncer *b = q->bouncer;

        TAILQ_REMOVE(&b->lists[q->state], q, entry);
        b->n[q->state]--;
        TAILQ_INSERT_TAIL(&b->lists[state], q, entry);
        b->n[state]++;
        q->state = state;
}

static int question_new(Bouncer *b, Peer *peer, sd_bus_message *m, Question **ret) {
        Question *q;

        q = calloc(1, sizeof(*q));
        if (!q)
                return -ENOMEM;
        q->m = m;
        if (!tsearch(q, &b->by_message, question_compare)) {
                free(q);
                return -ENOMEM;
        }
        sd_bus_message_ref(m);
        q->bouncer = b;
        q->peer = peer_ref(peer);
        TAILQ_INSERT_TAIL(&b->lists[QUESTION_NEW], q, entry);
        b->n[QUESTION_NEW]++;
        *ret = q;
        return 0;
}

static void question_free(Question *q) {
        Bouncer *b = q->bouncer;

        check_cancel(q->check);
        (void)tdelete(q, &b->by_message, question_compare);
        TAILQ_REMOVE(&b->lists[q->state], q, entry);
        b->n[q->state]--;
        sd_bus_message_unref(q->m);
        peer_unref(q->peer);
        free(q);
}

/* The message goes back to its handler. */
static void question_finish(Question *q) {
        int r;

        question_set_state(q, QUESTION_ANSWERED);
        r = sd_bus_enqueue_for_read(q->bouncer->bus, q->m);
        if (r < 0) {
                (void)sd_bus_reply_method_errno(q->m, r, NULL);
                question_free(q);
        }
}

static void question_fail(Question *q, int fault) {
        q->fault = fault;
        question_finish(q);
}

static Action question_action(const Question *q) {
        return q->todo & -q->todo;
}

static bool question_may_prompt(const Question *q) {
        return !q->quiet && sd_bus_message_get_allow_interactive_authorization(q->m) > 0;
}

static void question_refuse(Question *q, int code, const char *words) {
        const ActionInfo *info = action_info(question_action(q));
        const char *group = info->action == ACTION_MANAGE
                                    ? ""
                                    : ", as the package's example rules do for the group "
                                      "perfalloc-users";

        if (q->quiet)
                q->denied |= info->action;
        else {
                q->refused = info->action;
                (void)refuse(
                        &q->why, code,
                        "%s (%s): %s. An administrator can allow it with a polkit rule%s; root "
                        "needs no permission",
                        info->name, info->what, words, group);
        }
        question_finish(q);
}

static void on_checked(void *userdata, int r, const PolkitAnswer *answer,
                       const sd_bus_error *error);

static int question_check(Question *q, bool prompt, bool first) {
        q->prompt = prompt;
        return checks_ask(&q->bouncer->checks, q->peer, question_action(q), &q->details, prompt,
                          first, on_checked, q, &q->check);
}

/* Asks for the next action. What may be kept is first asked for without a prompt: a yes that
 * follows a prompt looks the same, and must not be kept. */
static int question_ask(Question *q, bool first) {
        return question_check(q, question_may_prompt(q) && !(question_action(q) & ACTIONS_KEPT),
                              first);
}

static void question_grant(Question *q) {
        int r;

        q->granted |= question_action(q);
        q->todo &= ~q->granted;
        if (q->todo == 0) {
                question_finish(q);
                return;
        }
        r = question_ask(q, true);
        if (r < 0)
                question_fail(q, r);
}

static void question_read_error(Question *q, const sd_bus_error *e) {
        static const char polkit[] = "org.freedesktop.PolicyKit1.";
        const char *message = e->message ? e->message : "";
        char words[384];

        if (strncmp(e->name, polkit, strlen(polkit)) == 0)
                (void)snprintf(words, sizeof(words), "polkit cannot say: %s (%s)", message,
                               e->name);
        else
                (void)snprintf(words, sizeof(words),
                               "polkit does not answer: %s (%s), see systemctl status polkit",
                               message, e->name);
        question_refuse(q, REFUSAL_ACCESS_DENIED, words);
}

static void question_read_no(Question *q, const PolkitAnswer *answer) {
        int r;

        if (answer->challenge && !q->prompt && question_may_prompt(q)) {
                r = question_check(q, true, true);
                if (r < 0)
                        question_fail(q, r);
        } else if (answer->challenge && !q->prompt)
                question_refuse(q, REFUSAL_INTERACTION_REQUIRED,
                                "needs authentication, and the caller did not allow a prompt "
                                "(busctl --allow-interactive-authorization=yes)");
        else if (answer->challenge)
                question_refuse(q, REFUSAL_ACCESS_DENIED,
                                "needs authentication, and the caller's session has no agent that "
                                "could ask for it (pkttyagent is one for terminals)");
        else if (answer->dismissed)
                question_refuse(q, REFUSAL_ACCESS_DENIED, "the authentication was dismissed");
        else
                question_refuse(q, REFUSAL_ACCESS_DENIED, "polkit says no");
}

static void on_checked(void *userdata, int r, const PolkitAnswer *answer,
                       const sd_bus_error *error) {
        Question *q = userdata;

        q->check = NULL;
        if (r == -ETIMEDOUT)
                question_refuse(q, REFUSAL_ACCESS_DENIED, "polkit does not answer in time");
        else if (r < 0)
                question_fail(q, r);
        else if (!answer)
                question_read_error(q, error);
        else if (!answer->authorized)
                question_read_no(q, answer);
        else {
                if (!q->prompt && !answer->challenge && !answer->temporary)
                        consents_keep(&q->bouncer->consents, q->peer, question_action(q),
                                      &q->details);
                question_grant(q);
        }
}

void bouncer_forget_peer(Bouncer *b, Peer *peer) {
        Question *q, *next;

        for (size_t i = 0; i < _QUESTION_STATE_MAX; i++)
                for (q = TAILQ_FIRST(&b->lists[i]); q; q = next) {
                        next = TAILQ_NEXT(q, entry);
                        if (q->peer == peer)
                                question_free(q);
                }
        consents_forget_peer(&b->consents, peer);
}

/* The message of an answered question is about to be handled: what is known of it is needed until
 * then. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Bouncer *b = userdata;
        Question *q;

        if (b->n[QUESTION_ANSWERED] == 0)
                return 0;
        q = question_find(b, m);
        if (q && q->state == QUESTION_ANSWERED) {
                question_set_state(q, QUESTION_RUNNING);
                (void)sd_event_source_set_enabled(b->sweep, SD_EVENT_ONESHOT);
        }
        return 0;
}

static int on_sweep(sd_event_source *source, void *userdata) {
        Bouncer *b = userdata;

        while (!TAILQ_EMPTY(&b->lists[QUESTION_RUNNING]))
                question_free(TAILQ_FIRST(&b->lists[QUESTION_RUNNING]));
        return 0;
}

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Bouncer *b = userdata;

        consents_clear(&b->consents);
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
                if (consents_have(&b->consents, peer, left & -left, details))
                        set |= left & -left;
        return set;
}

static int question_start(Question *q, unsigned actions, const Details *details, bool quiet,
                          Refusal *why) {
        int r;

        q->details = *details;
        q->todo = actions;
        q->quiet = quiet;
        question_set_state(q, QUESTION_ASKING);
        r = question_ask(q, false);
        if (r == 0)
                return BOUNCER_PENDING;
        if (r == FAIRQUEUE_FULL)
                r = refuse(why, REFUSAL_LIMITS_EXCEEDED,
                           "%u calls of user %lu wait for polkit already, as many as may: wait for "
                           "their answers, or let go of some",
                           q->bouncer->checks.queue.waiting_max, (unsigned long)q->peer->uid);
        question_free(q);
        return r;
}

static int bouncer_ask(Bouncer *b, Peer *peer, sd_bus_message *m, unsigned actions,
                       const char *reason, bool quiet, Refusal *why) {
        Question *q = question_find(b, m);
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
                r = question_new(b, peer, m, &q);
                if (r < 0)
                        return r;
        }
        return question_start(q, actions, &details, quiet, why);
}

int bouncer_check(Bouncer *b, Peer *peer, sd_bus_message *m, unsigned actions, const char *reason,
                  Refusal *why) {
        int r;

        r = screen(peer, m, actions, why);
        if (r != 0 || peer->uid == 0 || actions == ACTION_NONE)
                return r;
        return bouncer_ask(b, peer, m, actions, reason, false, why);
}

int bouncer_may_manage(Bouncer *b, Peer *peer, sd_bus_message *m) {
        int r;

        r = screen(peer, m, ACTION_MANAGE, NULL);
        if (r == 0 && peer->uid != 0)
                r = bouncer_ask(b, peer, m, ACTION_MANAGE, NULL, true, NULL);
        return r < 0 ? r : r == 0;
}

void bouncer_set_waiting_max(Bouncer *b, unsigned max) {
        b->checks.queue.waiting_max = max;
}

size_t bouncer_n_waiting(const Bouncer *b) {
        return b->n[QUESTION_ASKING];
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
        for (size_t i = 0; i < _QUESTION_STATE_MAX; i++)
                TAILQ_INIT(&b->lists[i]);
        b->bus = sd_bus_ref(bus);

        r = checks_init(&b->checks, bus);
        if (r >= 0)
                r = consents_init(&b->consents, sd_bus_get_event(bus));
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

        for (size_t i = 0; i < _QUESTION_STATE_MAX; i++)
                while (!TAILQ_EMPTY(&b->lists[i]))
                        question_free(TAILQ_FIRST(&b->lists[i]));
        checks_done(&b->checks);
        consents_done(&b->consents);
        sd_bus_slot_unref(b->filter);
        sd_bus_slot_unref(b->changed);
        sd_event_source_disable_unref(b->sweep);
        sd_bus_unref(b->bus);
        free(b);
        return NULL;
}

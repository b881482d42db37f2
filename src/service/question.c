/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "question.h"

#include <search.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define AGAIN_USEC (10 * USEC_PER_MSEC)

static int question_compare(const void *a, const void *b) {
        uintptr_t x = (uintptr_t) ((const Question *) a)->m,
                  y = (uintptr_t) ((const Question *) b)->m;

        return (x > y) - (x < y);
}

Question *question_find(Questions *qs, sd_bus_message *m) {
        Question **found = tfind(&(Question){ .m = m }, &qs->by_message, question_compare);

        return found ? *found : NULL;
}

void question_set_state(Question *q, QuestionState state) {
        Questions *qs = q->questions;

        TAILQ_REMOVE(&qs->lists[q->state], q, entry);
        qs->n[q->state]--;
        TAILQ_INSERT_TAIL(&qs->lists[state], q, entry);
        qs->n[state]++;
        q->state = state;
}

int question_new(Questions *qs, Peer *peer, sd_bus_message *m, Question **ret) {
        Question *q;

        q = calloc(1, sizeof(*q));
        if (!q)
                return -ENOMEM;
        q->m = m;
        if (!tsearch(q, &qs->by_message, question_compare)) {
                free(q);
                return -ENOMEM;
        }
        sd_bus_message_ref(m);
        (void) sd_event_now(sd_bus_get_event(qs->bus), CLOCK_MONOTONIC, &q->since_usec);
        q->questions = qs;
        q->peer = peer_ref(peer);
        TAILQ_INSERT_TAIL(&qs->lists[QUESTION_NEW], q, entry);
        qs->n[QUESTION_NEW]++;
        *ret = q;
        return 0;
}

void question_free(Question *q) {
        Questions *qs = q->questions;

        check_cancel(q->check);
        (void) tdelete(q, &qs->by_message, question_compare);
        TAILQ_REMOVE(&qs->lists[q->state], q, entry);
        qs->n[q->state]--;
        sd_bus_message_unref(q->m);
        peer_unref(q->peer);
        free(q);
}

/* The message goes back to its handler, which may have begun something that only it can end: so it
 * is not answered from here when the queue has no room for it, but tried again. */
static void question_finish(Question *q) {
        Questions *qs = q->questions;

        question_set_state(q, QUESTION_ANSWERED);
        if (sd_bus_enqueue_for_read(qs->bus, q->m) >= 0)
                return;
        question_set_state(q, QUESTION_STUCK);
        (void) sd_event_source_set_time_relative(qs->again, AGAIN_USEC);
        (void) sd_event_source_set_enabled(qs->again, SD_EVENT_ONESHOT);
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Questions *qs = userdata;

        for (size_t n = qs->n[QUESTION_STUCK]; n > 0; n--)
                question_finish(TAILQ_FIRST(&qs->lists[QUESTION_STUCK]));
        return 0;
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
                (void) refuse(
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
        return checks_ask(&q->questions->checks, q->peer, question_action(q), &q->details, prompt,
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
                (void) snprintf(words, sizeof(words), "polkit cannot say: %s (%s)", message,
                                e->name);
        else
                (void) snprintf(words, sizeof(words),
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
                        consents_keep(&q->questions->consents, q->peer, question_action(q),
                                      &q->details);
                question_grant(q);
        }
}

int question_start(Question *q, unsigned actions, const Details *details, bool quiet,
                   Refusal *why) {
        int r;

        q->details = *details;
        q->todo = actions;
        q->quiet = quiet;
        question_set_state(q, QUESTION_ASKING);
        r = question_ask(q, false);
        if (r == 0)
                return 0;
        if (r == FAIRQUEUE_FULL)
                r = refuse(why, REFUSAL_LIMITS_EXCEEDED,
                           "%u calls of user %lu wait for polkit already, as many as may "
                           "(PendingCallsPerUser= in perfallocd.conf): wait for their answers, or "
                           "let go of some",
                           q->questions->checks.queue.waiting_max, (unsigned long) q->peer->uid);
        question_free(q);
        return r;
}

int questions_init(Questions *qs, sd_bus *bus) {
        int r;

        *qs = (Questions){ .bus = sd_bus_ref(bus) };
        for (size_t i = 0; i < _QUESTION_STATE_MAX; i++)
                TAILQ_INIT(&qs->lists[i]);
        r = checks_init(&qs->checks, bus);
        if (r < 0)
                return r;
        r = sd_event_add_time(sd_bus_get_event(bus), &qs->again, CLOCK_MONOTONIC, 0, 1, on_again,
                              qs);
        if (r >= 0)
                r = sd_event_source_set_enabled(qs->again, SD_EVENT_OFF);
        if (r < 0)
                return r;
        return consents_init(&qs->consents, sd_bus_get_event(bus));
}

void questions_done(Questions *qs) {
        for (size_t i = 0; i < _QUESTION_STATE_MAX; i++)
                while (!TAILQ_EMPTY(&qs->lists[i]))
                        question_free(TAILQ_FIRST(&qs->lists[i]));
        qs->again = sd_event_source_disable_unref(qs->again);
        checks_done(&qs->checks);
        consents_done(&qs->consents);
        qs->bus = sd_bus_unref(qs->bus);
}

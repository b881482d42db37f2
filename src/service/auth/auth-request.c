/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "auth-request.h"

#include <search.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define AGAIN_USEC (10 * USEC_PER_MSEC)

static int auth_request_compare(const void *a, const void *b) {
        uintptr_t x = (uintptr_t) ((const AuthRequest *) a)->m,
                  y = (uintptr_t) ((const AuthRequest *) b)->m;

        return (x > y) - (x < y);
}

AuthRequest *auth_request_find(AuthRequests *qs, sd_bus_message *m) {
        AuthRequest **found =
                tfind(&(AuthRequest){ .m = m }, &qs->by_message, auth_request_compare);

        return found ? *found : NULL;
}

void auth_request_set_state(AuthRequest *q, AuthRequestState state) {
        AuthRequests *qs = q->questions;

        TAILQ_REMOVE(&qs->lists[q->state], q, entry);
        qs->n[q->state]--;
        TAILQ_INSERT_TAIL(&qs->lists[state], q, entry);
        qs->n[state]++;
        q->state = state;
}

int auth_request_new(AuthRequests *qs, Peer *peer, sd_bus_message *m, AuthRequest **ret) {
        AuthRequest *q;

        q = calloc(1, sizeof(*q));
        if (!q)
                return -ENOMEM;
        q->m = m;
        if (!tsearch(q, &qs->by_message, auth_request_compare)) {
                free(q);
                return -ENOMEM;
        }
        sd_bus_message_ref(m);
        (void) sd_event_now(sd_bus_get_event(qs->bus), CLOCK_MONOTONIC, &q->since_usec);
        q->questions = qs;
        q->peer = peer_ref(peer);
        TAILQ_INSERT_TAIL(&qs->lists[AUTH_REQUEST_NEW], q, entry);
        qs->n[AUTH_REQUEST_NEW]++;
        *ret = q;
        return 0;
}

void auth_request_free(AuthRequest *q) {
        AuthRequests *qs = q->questions;

        check_cancel(q->check);
        (void) tdelete(q, &qs->by_message, auth_request_compare);
        TAILQ_REMOVE(&qs->lists[q->state], q, entry);
        qs->n[q->state]--;
        sd_bus_message_unref(q->m);
        peer_unref(q->peer);
        free(q);
}

/* The message goes back to its handler, which may have begun something that only it can end: so it
 * is not answered from here when the queue has no room for it, but tried again. */
static void auth_request_finish(AuthRequest *q) {
        AuthRequests *qs = q->questions;

        auth_request_set_state(q, AUTH_REQUEST_ANSWERED);
        if (sd_bus_enqueue_for_read(qs->bus, q->m) >= 0)
                return;
        auth_request_set_state(q, AUTH_REQUEST_STUCK);
        (void) sd_event_source_set_time_relative(qs->again, AGAIN_USEC);
        (void) sd_event_source_set_enabled(qs->again, SD_EVENT_ONESHOT);
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        AuthRequests *qs = userdata;

        for (size_t n = qs->n[AUTH_REQUEST_STUCK]; n > 0; n--)
                auth_request_finish(TAILQ_FIRST(&qs->lists[AUTH_REQUEST_STUCK]));
        return 0;
}

static void auth_request_fail(AuthRequest *q, int fault) {
        q->fault = fault;
        auth_request_finish(q);
}

static Action auth_request_action(const AuthRequest *q) {
        return q->todo & -q->todo;
}

static bool auth_request_may_prompt(const AuthRequest *q) {
        return !q->quiet && sd_bus_message_get_allow_interactive_authorization(q->m) > 0;
}

static void auth_request_refuse(AuthRequest *q, int code, const char *words) {
        const ActionInfo *info = action_info(auth_request_action(q));
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
        auth_request_finish(q);
}

static void on_checked(void *userdata, int r, const PolkitAnswer *answer,
                       const sd_bus_error *error);

static int auth_request_check(AuthRequest *q, bool prompt, bool first) {
        q->prompt = prompt;
        return checks_ask(&q->questions->checks, q->peer, auth_request_action(q), &q->details,
                          prompt, first, on_checked, q, &q->check);
}

/* Asks for the next action. What may be kept is first asked for without a prompt: a yes that
 * follows a prompt looks the same, and must not be kept. */
static int auth_request_ask(AuthRequest *q, bool first) {
        return auth_request_check(
                q, auth_request_may_prompt(q) && !(auth_request_action(q) & ACTIONS_KEPT), first);
}

static void auth_request_grant(AuthRequest *q) {
        int r;

        q->granted |= auth_request_action(q);
        q->todo &= ~q->granted;
        if (q->todo == 0) {
                auth_request_finish(q);
                return;
        }
        r = auth_request_ask(q, true);
        if (r < 0)
                auth_request_fail(q, r);
}

static void auth_request_read_error(AuthRequest *q, const sd_bus_error *e) {
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
        auth_request_refuse(q, REFUSAL_ACCESS_DENIED, words);
}

static void auth_request_read_no(AuthRequest *q, const PolkitAnswer *answer) {
        int r;

        if (answer->challenge && !q->prompt && auth_request_may_prompt(q)) {
                r = auth_request_check(q, true, true);
                if (r < 0)
                        auth_request_fail(q, r);
        } else if (answer->challenge && !q->prompt)
                auth_request_refuse(q, REFUSAL_INTERACTION_REQUIRED,
                                    "needs authentication, and the caller did not allow a prompt "
                                    "(busctl --allow-interactive-authorization=yes)");
        else if (answer->challenge)
                auth_request_refuse(
                        q, REFUSAL_ACCESS_DENIED,
                        "needs authentication, and the caller's session has no agent that "
                        "could ask for it (pkttyagent is one for terminals)");
        else if (answer->dismissed)
                auth_request_refuse(q, REFUSAL_ACCESS_DENIED, "the authentication was dismissed");
        else
                auth_request_refuse(q, REFUSAL_ACCESS_DENIED, "polkit says no");
}

static void on_checked(void *userdata, int r, const PolkitAnswer *answer,
                       const sd_bus_error *error) {
        AuthRequest *q = userdata;

        q->check = NULL;
        if (r == -ETIMEDOUT)
                auth_request_refuse(q, REFUSAL_ACCESS_DENIED, "polkit does not answer in time");
        else if (r < 0)
                auth_request_fail(q, r);
        else if (!answer)
                auth_request_read_error(q, error);
        else if (!answer->authorized)
                auth_request_read_no(q, answer);
        else {
                if (!q->prompt && !answer->challenge && !answer->temporary)
                        auth_cache_keep(&q->questions->consents, q->peer, auth_request_action(q),
                                        &q->details);
                auth_request_grant(q);
        }
}

int auth_request_start(AuthRequest *q, unsigned actions, const Details *details, bool quiet,
                       Refusal *why) {
        int r;

        q->details = *details;
        q->todo = actions;
        q->quiet = quiet;
        auth_request_set_state(q, AUTH_REQUEST_ASKING);
        r = auth_request_ask(q, false);
        if (r == 0)
                return 0;
        if (r == FAIRQUEUE_FULL)
                r = refuse(why, REFUSAL_LIMITS_EXCEEDED,
                           "%u calls of user %lu wait for polkit already, as many as may "
                           "(PendingCallsPerUser= in perfallocd.conf): wait for their answers, or "
                           "let go of some",
                           q->questions->checks.queue.waiting_max, (unsigned long) q->peer->uid);
        auth_request_free(q);
        return r;
}

int auth_requests_init(AuthRequests *qs, sd_bus *bus) {
        int r;

        *qs = (AuthRequests){ .bus = sd_bus_ref(bus) };
        for (size_t i = 0; i < _AUTH_REQUEST_STATE_MAX; i++)
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
        return auth_cache_init(&qs->consents, sd_bus_get_event(bus));
}

void auth_requests_done(AuthRequests *qs) {
        for (size_t i = 0; i < _AUTH_REQUEST_STATE_MAX; i++)
                while (!TAILQ_EMPTY(&qs->lists[i]))
                        auth_request_free(TAILQ_FIRST(&qs->lists[i]));
        qs->again = sd_event_source_disable_unref(qs->again);
        checks_done(&qs->checks);
        auth_cache_done(&qs->consents);
        qs->bus = sd_bus_unref(qs->bus);
}

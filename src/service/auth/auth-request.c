/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "auth-request.h"

#include <stdio.h>
#include <string.h>

static void auth_request_free(AuthRequest *q) {
        check_cancel(q->check);
        free(q);
}

int auth_request_new(AuthRequests *all, Request *request, AuthRequest **ret) {
        AuthRequest *q = calloc(1, sizeof(*q));

        if (!q)
                return -ENOMEM;
        q->all = all;
        q->request = request;
        q->subject = (PolkitSubject){ .name = request->peer->name, .uid = request->peer->uid };
        request->auth = q;
        request->auth_free = auth_request_free;
        *ret = q;
        return 0;
}

static void auth_request_fail(AuthRequest *q, int fault) {
        q->fault = fault;
        request_resume(q->request);
}

static Action auth_request_action(const AuthRequest *q) {
        return q->todo & -q->todo;
}

static bool auth_request_may_prompt(const AuthRequest *q) {
        return !q->quiet && sd_bus_message_get_allow_interactive_authorization(q->request->m) > 0;
}

static void auth_request_refuse(AuthRequest *q, int code, const char *words) {
        const ActionInfo *info = action_info(auth_request_action(q));
        const char *group = info->action == ACTION_MANAGE
                                    ? ""
                                    : ", as the example rules do for the group perfalloc-users";

        if (q->quiet)
                q->denied |= info->action;
        else {
                q->refused = info->action;
                (void) refuse(&q->why, code,
                              "not permitted to %s (%s): %s%s%s. An administrator can permit it "
                              "with a polkit rule%s",
                              info->what, info->name, words, info->less ? "; " : "",
                              info->less ?: "", group);
        }
        request_resume(q->request);
}

static void on_checked(void *userdata, int r, const PolkitAnswer *answer,
                       const sd_bus_error *error);

static int auth_request_check(AuthRequest *q, bool prompt, bool first) {
        q->prompt = prompt;
        return checks_ask(&q->all->checks, &q->subject, auth_request_action(q), &q->details, prompt,
                          first, on_checked, q, &q->check);
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
                request_resume(q->request);
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
                (void) snprintf(words, sizeof(words), "polkit reports an error: %s (%s)", message,
                                e->name);
        else
                (void) snprintf(words, sizeof(words),
                                "polkit does not answer: %s (%s), see systemctl status polkit",
                                message, e->name);
        auth_request_refuse(q, REFUSAL_ACCESS_DENIED, words);
}

/* polkit gives the same answer for a wrong password and for a rule that says no. Asked again
 * without a prompt, it tells them apart. A yes would come from another prompt of the same session:
 * this one failed all the same. */
static void auth_request_ask_why(AuthRequest *q) {
        int r;

        q->failed = true;
        r = auth_request_check(q, false, true);
        if (r < 0)
                auth_request_fail(q, r);
}

static void auth_request_prompt(AuthRequest *q) {
        int r = auth_request_check(q, true, true);

        if (r < 0)
                auth_request_fail(q, r);
}

static void auth_request_read_no(AuthRequest *q, const PolkitAnswer *answer) {
        if (q->failed)
                auth_request_refuse(q, REFUSAL_ACCESS_DENIED,
                                    answer->challenge || answer->authorized
                                            ? "the authentication failed"
                                            : "polkit denies it");
        else if (answer->challenge && !q->prompt && auth_request_may_prompt(q))
                auth_request_prompt(q);
        else if (answer->challenge && !q->prompt)
                auth_request_refuse(q, REFUSAL_INTERACTION_REQUIRED,
                                    "authentication is needed, and the caller did not allow a "
                                    "prompt (busctl --allow-interactive-authorization=yes)");
        else if (answer->challenge)
                auth_request_refuse(q, REFUSAL_ACCESS_DENIED,
                                    "authentication is needed, and the session has no agent that "
                                    "could ask for it (pkttyagent is one for terminals)");
        else if (answer->dismissed)
                auth_request_refuse(q, REFUSAL_ACCESS_DENIED, "the authentication was dismissed");
        else if (q->prompt)
                auth_request_ask_why(q);
        else
                auth_request_refuse(q, REFUSAL_ACCESS_DENIED, "polkit denies it");
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
        else if (!answer->authorized || q->failed)
                auth_request_read_no(q, answer);
        else {
                if (!q->prompt && !answer->challenge && !answer->temporary)
                        auth_cache_keep(&q->all->cache, q->request->peer, auth_request_action(q),
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
        r = auth_request_ask(q, false);
        if (r == 0)
                return 0;
        if (r == FAIRQUEUE_FULL)
                r = refuse(why, REFUSAL_LIMITS_EXCEEDED,
                           "%u calls of user %lu are already waiting for polkit, the limit of "
                           "PendingCallsPerUser= in perfallocd.conf: wait for their answers, or "
                           "cancel some",
                           q->all->checks.queue.waiting_max, (unsigned long) q->request->peer->uid);
        return r;
}

int auth_requests_init(AuthRequests *all, sd_bus *bus) {
        int r = checks_init(&all->checks, bus);

        return r < 0 ? r : auth_cache_init(&all->cache, sd_bus_get_event(bus));
}

void auth_requests_done(AuthRequests *all) {
        checks_done(&all->checks);
        auth_cache_done(&all->cache);
}

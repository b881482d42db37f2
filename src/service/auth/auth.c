/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "auth.h"

#include <assert.h>
#include <time.h>

#include "service/auth/audit.h"
#include "service/auth/auth-request.h"

struct Auth {
        Context *context;
        AuthRequests requests;
        sd_bus_slot *changed;
};

void auth_forget_peer(Auth *a, Peer *peer) {
        auth_cache_forget_peer(&a->requests.cache, peer);
}

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Auth *a = userdata;

        auth_cache_clear(&a->requests.cache);
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

static unsigned cached_actions(Auth *a, const Peer *peer, unsigned actions,
                               const Details *details) {
        unsigned set = 0;

        for (unsigned left = actions & ACTIONS_KEPT; left; left &= left - 1)
                if (auth_cache_have(&a->requests.cache, peer, left & -left, details))
                        set |= left & -left;
        return set;
}

/* The request of the message; a new one if its handler runs for the first time. */
static int auth_get_request(Auth *a, Peer *peer, sd_bus_message *m, Request **ret) {
        *ret = request_find(a->context->requests, m);
        return *ret ? 0 : request_new(a->context, peer, m, REQUEST_RUNNING, ret);
}

/* Asks polkit. 0: polkit is asked. */
static int auth_start(Auth *a, Peer *peer, sd_bus_message *m, unsigned actions,
                      const Details *details, bool quiet, Refusal *why) {
        Request *request;
        AuthRequest *q;
        int r = auth_get_request(a, peer, m, &request);

        if (r < 0)
                return r;
        q = request->auth;
        if (!q)
                r = auth_request_new(&a->requests, request, &q);
        if (r < 0)
                return r;
        request_set_state(request, REQUEST_AUTHORIZING); /* first: it may be resumed at once */
        r = auth_request_start(q, actions, details, quiet, why);
        if (r != 0)
                request_set_state(request, REQUEST_RUNNING);
        return r;
}

static int auth_ask(Auth *a, Peer *peer, sd_bus_message *m, unsigned actions, const Asked *asked,
                    bool quiet, Refusal *why) {
        const Request *request = request_find(a->context->requests, m);
        const AuthRequest *q = request ? request->auth : NULL;
        Details details;
        int r;

        if (q) {
                if (request->state == REQUEST_AUTHORIZING)
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
        details_fill(&details, peer->uid, peer->pid, asked);
        actions &= ~cached_actions(a, peer, actions, &details);
        if (actions == 0)
                return 0;
        r = auth_start(a, peer, m, actions, &details, quiet, why);
        return r == 0 ? AUTH_PENDING : r;
}

/* polkit says yes to every uid 0, so it is not asked about one that is not root: it has what an
 * ordinary user has from everywhere. */
static int refuse_powerless(unsigned actions, Refusal *why) {
        unsigned denied = actions & ~(unsigned) ACTION_COUNT_OWN;
        const ActionInfo *info = action_info(denied & -denied);

        if (denied == 0)
                return 0;
        return refuse(
                why, REFUSAL_ACCESS_DENIED,
                "not permitted to %s (%s): the caller runs as uid 0 without CAP_PERFMON or "
                "CAP_SYS_ADMIN in the service's user namespace, and so does not count as root; "
                "give it that capability, or run it as an ordinary user whom a polkit rule permits "
                "it",
                info->what, info->name);
}

int auth_check(Auth *a, Peer *peer, sd_bus_message *m, unsigned actions, const Asked *asked,
               Refusal *why) {
        int r;

        r = screen(peer, m, actions, why);
        if (r != 0 || peer->root || actions == ACTION_NONE)
                return r;
        r = peer->uid == 0 ? refuse_powerless(actions, why)
                           : auth_ask(a, peer, m, actions, asked, false, why);
        if (r == REFUSAL_ACCESS_DENIED || r == REFUSAL_INTERACTION_REQUIRED) {
                totals_add(&a->context->totals, TOTAL_DENIALS, 1);
                audit_denial(peer, actions, why);
        }
        return r;
}

int auth_may_manage(Auth *a, Peer *peer, sd_bus_message *m) {
        int r;

        r = screen(peer, m, ACTION_MANAGE, NULL);
        if (r == 0 && peer->uid == 0 && !peer->root)
                r = REFUSAL_ACCESS_DENIED;
        else if (r == 0 && !peer->root)
                r = auth_ask(a, peer, m, ACTION_MANAGE, NULL, true, NULL);
        return r < 0 ? r : r == 0;
}

int auth_check_owner(Auth *a, Peer *peer, sd_bus_message *m, uid_t uid, const char *what,
                     Refusal *why) {
        Refusal denied;
        int r;

        if (peer->root || peer->uid == uid)
                return peer->gone ? -ESTALE : 0;
        r = auth_check(a, peer, m, ACTION_MANAGE, NULL, &denied);
        if (r <= 0)
                return r;
        return refuse(why, REFUSAL_NOT_OWNER, "%s belongs to uid %u, and: %.600s", what,
                      (unsigned) uid, denied.text);
}

Checks *auth_checks(Auth *a) {
        return &a->requests.checks;
}

void auth_set_waiting_max(Auth *a, unsigned max) {
        a->requests.checks.queue.waiting_max = max;
}

int auth_new(Context *context, Auth **ret) {
        Auth *a;
        int r;

        assert(sd_bus_get_event(context->bus));
        a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        a->context = context;
        r = auth_requests_init(&a->requests, context->bus);
        if (r >= 0)
                r = polkit_watch(context->bus, on_changed, a, &a->changed);
        if (r < 0) {
                auth_free(a);
                return r;
        }
        *ret = a;
        return 0;
}

Auth *auth_free(Auth *a) {
        if (!a)
                return NULL;
        auth_requests_done(&a->requests);
        sd_bus_slot_unref(a->changed);
        free(a);
        return NULL;
}

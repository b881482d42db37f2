/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-call.h"

#include "service/auth/auth.h"
#include "service/bus/delivery.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-time.h"
#include "service/hold/hold.h"
#include "service/pmu/capacity.h"
#include "service/util/lease.h"
#include "service/util/reply.h"

/* Asks for the action that the hold needs. */
static int hold_authorize(Holds *holds, Peer *peer, sd_bus_message *m, HoldRequest *q,
                          Refusal *why) {
        unsigned action = q->unattended  ? ACTION_HOLD_UNATTENDED
                          : q->exclusive ? ACTION_HOLD_EXCLUSIVE
                                         : ACTION_HOLD;

        Asked asked = ASKED_NULL;

        if (q->on_behalf) {
                action |= ACTION_MANAGE;
                asked.target = q->uid;
                asked.tag = q->tag;
        }
        asked.reason = q->reason;
        asked.mode = q->exclusive ? "exclusive" : "shared";
        scope_request_ask(&q->what, &asked);
        return auth_check(holds->context->auth, peer, m, action, &asked, why);
}

int hold_limit_lifetime(const Holds *holds, Peer *peer, sd_bus_message *m,
                        uint64_t *lifetime_usec) {
        int r = 1;

        if (*lifetime_usec == 0)
                *lifetime_usec = UINT64_MAX;
        if (!peer->root && *lifetime_usec > holds->context->config.hold_max_usec)
                r = auth_may_manage(holds->context->auth, peer, m);
        if (r == 0)
                *lifetime_usec = holds->context->config.hold_max_usec;
        return MIN(r, 0);
}

/* Without manage the configured maxima apply. polkit is asked for manage only if the client asked
 * for more explicitly: a forgotten lease ends after HoldMaxSec in any case. */
static int hold_limit(const Holds *holds, Peer *peer, sd_bus_message *m, HoldRequest *q) {
        bool asks_for_more =
                q->wait_usec > holds->context->config.wait_max_usec ||
                q->yield_usec > holds->context->config.wait_max_usec ||
                (q->unattended && q->lifetime_usec > holds->context->config.hold_max_usec);

        if (peer->root || q->on_behalf) /* which needs manage */
                return 0;
        if (asks_for_more) {
                int r = auth_may_manage(holds->context->auth, peer, m);

                if (r != 0)
                        return MIN(r, 0);
        }
        q->lifetime_usec = MIN(q->lifetime_usec, holds->context->config.hold_max_usec);
        q->wait_usec = MIN(q->wait_usec, holds->context->config.wait_max_usec);
        q->yield_usec = MIN(q->yield_usec, holds->context->config.wait_max_usec);
        return 0;
}

static int hold_reply(Hold *h, sd_bus_message *m, int lease, sd_bus_error *error) {
        int r;

        hold_signal_added(h);
        if (lease >= 0)
                r = sd_bus_reply_method_return(m, "oh", h->object.path, lease);
        else
                r = sd_bus_reply_method_return(m, "o", h->object.path);
        if (r < 0) {
                hold_end(h, HOLD_RELEASED);
                return reply_failure(r, NULL, error);
        }
        hold_begin(h);
        return 1;
}

/* The maker asks again: for a prolog that runs twice. */
static int hold_reply_again(Hold *h, const HoldRequest *q, sd_bus_message *m, Refusal *why) {
        _cleanup_close_ int lease = -1;
        int r;

        if (!hold_request_equal(&h->request, q))
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "option 'tag': %s has it, for another user, with other counters, or "
                              "by the other of Hold and HoldUnattended",
                              h->object.path);
        if (h->lease < 0)
                return MIN(sd_bus_reply_method_return(m, "o", h->object.path), 0);
        r = lease_copy(h->lease, &lease);
        return r < 0 ? r : MIN(sd_bus_reply_method_return(m, "oh", h->object.path, lease), 0);
}

/* Starts holds that wait for a counter that was the kernel's until now. */
static void holds_start_waiting(Holds *holds) {
        LedgerHold *l;

        while ((l = ledger_next(&holds->context->ledger))) {
                Hold *h = hold_of_ledger(l);

                hold_set_deadline(h);
                holds_apply(holds, h, h->yield_until_usec);
                hold_begin(h);
        }
}

static int handle_hold(sd_bus_message *m, Holds *holds, bool unattended, sd_bus_error *error) {
        _cleanup_(hold_request_done) HoldRequest request = HOLD_REQUEST_NULL;
        _cleanup_close_ int lease = -1;
        Peer *peer = peers_sender(holds->context->peers, m);
        Refusal why = REFUSAL_NULL;
        Hold *h = NULL;
        int r;

        r = capacities_refresh(holds->context->capacities);
        holds_start_waiting(holds);
        if (r == 0)
                r = hold_request_read(&holds->context->pmus, m, unattended, &request, &why);
        if (request.uid == HOLD_UID_CALLER)
                request.uid = peer->uid;
        if (r == 0 && !request.on_behalf)
                r = quota_check(&holds->context->quota, peer->uid, QUOTA_HOLDS, 1, &why);
        if (r == 0)
                r = hold_authorize(holds, peer, m, &request, &why);
        if (r == 0)
                r = hold_limit(holds, peer, m, &request);
        if (r == 0 && !unattended)
                r = delivery_admit(holds->context, peer, m, 1, &why);
        request.age_usec = request_age_usec(holds->context, m);
        if (r == 0 && *request.tag)
                h = hold_find_tagged(holds, peer->uid, request.tag);
        if (h) {
                r = hold_reply_again(h, &request, m, &why);
                return r == 0 ? 1 : reply_failure(r, &why, error);
        }
        if (r == 0) {
                holds->hooks.requested(holds->userdata, peer->pid);
                r = hold_new(holds, peer, &request, &h, unattended ? NULL : &lease, &why);
        }
        return r == 0 ? hold_reply(h, m, lease, error) : reply_failure(r, &why, error);
}

int hold_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return handle_hold(m, userdata, false, error);
}

int hold_call_handle_unattended(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return handle_hold(m, userdata, true, error);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-call.h"

#include "service/auth/auth.h"
#include "service/bus/delivery.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold.h"
#include "service/pmu/capacity.h"
#include "service/util/reply.h"

/* Asks for the action that the hold needs. */
static int hold_authorize(Holds *holds, Peer *peer, sd_bus_message *m, HoldRequest *q,
                          Refusal *why) {
        unsigned action = q->unattended  ? ACTION_HOLD_UNATTENDED
                          : q->exclusive ? ACTION_HOLD_EXCLUSIVE
                                         : ACTION_HOLD;

        Asked asked = ASKED_NULL;

        asked.reason = q->reason;
        asked.mode = q->exclusive ? "exclusive" : "shared";
        scope_request_ask(&q->what, &asked);
        return auth_check(holds->context->auth, peer, m, action, &asked, why);
}

/* Without manage the configured maxima apply. polkit is asked for manage only if the client asked
 * for more explicitly: a forgotten lease ends after HoldMaxSec in any case. */
static int hold_limit(const Holds *holds, Peer *peer, sd_bus_message *m, HoldRequest *q) {
        bool asks_for_more =
                q->wait_usec > holds->context->config.wait_max_usec ||
                q->yield_usec > holds->context->config.wait_max_usec ||
                (q->unattended && q->lifetime_usec > holds->context->config.hold_max_usec);

        if (peer->root)
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

static int handle_hold(sd_bus_message *m, Holds *holds, bool unattended, sd_bus_error *error) {
        _cleanup_(hold_request_done) HoldRequest request = HOLD_REQUEST_NULL;
        _cleanup_close_ int lease = -1;
        Peer *peer = peers_sender(holds->context->peers, m);
        Refusal why = REFUSAL_NULL;
        Hold *h;
        int r;

        r = capacities_refresh(holds->context->capacities);
        if (r == 0)
                r = hold_request_read(&holds->context->pmus, m, unattended, &request, &why);
        if (r == 0)
                r = quota_check(&holds->context->quota, peer->uid, QUOTA_HOLDS, 1, &why);
        if (r == 0)
                r = hold_authorize(holds, peer, m, &request, &why);
        if (r == 0)
                r = hold_limit(holds, peer, m, &request);
        if (r == 0 && !unattended)
                r = delivery_admit(holds->context, peer, m, 1, &why);
        request.age_usec = request_age_usec(holds->context, m);
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

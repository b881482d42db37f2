/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-auth.h"

#include "service/auth/auth.h"

int event_authorize(const EventOpening *o, const Request *call, uid_t target,
                    const char *untraceable, Refusal *why) {
        unsigned actions = event_request_actions(o->request, *untraceable);
        Refusal denied;
        Asked asked;
        int r = event_check_hold(o, why);

        if (r != 0)
                return r;
        event_request_ask(o->request, target, &asked);
        r = auth_check(call->context->auth, call->peer, call->m, actions, &asked, &denied);
        if (r <= 0)
                return r;
        (void) refuse(why, r, "%s%s%.600s", untraceable, *untraceable ? "; " : "", denied.text);
        event_request_blame(o->request, actions, why);
        return r;
}

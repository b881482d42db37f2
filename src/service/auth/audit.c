/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "audit.h"

#include <stdio.h>

#include "core/clock.h"
#include "service/auth/action.h"
#include "service/util/log.h"
#include "service/util/rate-limit.h"

/* By uid and actions, in µs of quiet. */
static RateLimit denials = { .per_sec = USEC_PER_SEC };

static bool denial_is_logged(uid_t uid, unsigned actions) {
        return rate_limit_take(&denials, (uint64_t) actions << 32 | uid, now_usec(CLOCK_MONOTONIC),
                               DENIAL_QUIET_USEC, DENIAL_QUIET_USEC);
}

void audit_denial(const Peer *peer, unsigned actions, const Refusal *why) {
        const char *action = action_name((Action) (actions & -actions));
        char uid[16], pid[16], text[REFUSAL_TEXT_MAX + 64];
        const char *fields[] = {
                "PERFALLOC_UID", uid, "PERFALLOC_PID", pid, "PERFALLOC_ACTION", action ?: "", NULL,
        };

        if (!denial_is_logged(peer->uid, actions))
                return;
        (void) snprintf(uid, sizeof(uid), "%u", (unsigned) peer->uid);
        (void) snprintf(pid, sizeof(pid), "%d", (int) peer->pid);
        (void) snprintf(text, sizeof(text), "Denied to uid %s (pid %s): %s", uid, pid, why->text);
        log_event(LOG_NOTICE, LOG_ID_DENIED, text, fields);
}

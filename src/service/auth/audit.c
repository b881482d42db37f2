/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "audit.h"

#include <stdio.h>

#include "core/clock.h"
#include "service/auth/action.h"
#include "service/util/log.h"

#define DENIALS_KEPT 64u

typedef struct Denial {
        uid_t uid;
        unsigned actions;
        uint64_t usec; /* CLOCK_MONOTONIC; 0: unused */
} Denial;

/* A ring: who falls out of it is logged again sooner. */
static Denial denials[DENIALS_KEPT];
static size_t next_denial;

static bool denial_is_news(uid_t uid, unsigned actions) {
        uint64_t now = now_usec(CLOCK_MONOTONIC);

        for (size_t i = 0; i < DENIALS_KEPT; i++)
                if (denials[i].usec > 0 && denials[i].uid == uid && denials[i].actions == actions &&
                    now - denials[i].usec < DENIAL_QUIET_USEC)
                        return false;
        denials[next_denial++ % DENIALS_KEPT] = (Denial){ uid, actions, now };
        return true;
}

void denial_log(const Peer *peer, unsigned actions, const Refusal *why) {
        const char *action = action_name((Action) (actions & -actions));
        char uid[16], pid[16], text[REFUSAL_TEXT_MAX + 64];
        const char *fields[] = {
                "PERFALLOC_UID", uid, "PERFALLOC_PID", pid, "PERFALLOC_ACTION", action ?: "", NULL,
        };

        if (!denial_is_news(peer->uid, actions))
                return;
        (void) snprintf(uid, sizeof(uid), "%u", (unsigned) peer->uid);
        (void) snprintf(pid, sizeof(pid), "%d", (int) peer->pid);
        (void) snprintf(text, sizeof(text), "Denied to uid %s (pid %s): %s", uid, pid, why->text);
        log_event(LOG_NOTICE, LOG_ID_DENIED, text, fields);
}

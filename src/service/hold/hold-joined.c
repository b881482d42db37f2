/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-joined.h"

#include "core/clock.h"
#include "service/hold/hold-probe.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-store.h"
#include "service/hold/hold-time.h"

#define RETRY_USEC       USEC_PER_SEC /* each later one twice as long after */
#define RETRY_MAX_USEC   (64 * USEC_PER_SEC)
#define EXPLANATIONS_MAX 8u /* as before the grant */

static void hold_set_confirmed(Hold *h, bool confirmed) {
        h->confirmed = confirmed;
        hold_save(h);
        hold_signal_confirmed(h);
}

static void hold_step_after(Hold *h, uint64_t usec) {
        hold_step_at(h, now_usec(CLOCK_MONOTONIC) + usec);
}

static void hold_joined_end_measuring(Hold *h) {
        hold_stop_measuring(h);
        h->n_explanations = 0;
}

void hold_joined_again(Hold *h) {
        if (cpuset_is_empty(&h->joined))
                return;
        h->joined_retry_usec = RETRY_USEC;
        hold_step_after(h, 0);
}

/* One more CPU does not confirm a hold that was not confirmed. */
static bool hold_is_joined_by(const Hold *h, unsigned cpu) {
        const Scope *scope = &h->request.what.scope;

        if (!h->confirmed && cpuset_is_empty(&h->joined))
                return false;
        for (size_t i = 0; i < scope->n_parts; i++)
                if (cpuset_has(&scope->parts[i].cpus, cpu))
                        return true;
        return false;
}

void holds_cpu_joined(Holds *holds, unsigned cpu) {
        Hold *h;

        TAILQ_FOREACH (h, &holds->granted, list) {
                if (!hold_is_joined_by(h, cpu))
                        continue;
                (void) cpuset_add(&h->joined, cpu); /* there is room for it */
                if (h->confirmed)
                        hold_set_confirmed(h, false);
                else
                        hold_save(h);
                hold_joined_end_measuring(h); /* it begins anew, with this one */
                hold_joined_again(h);
        }
}

/* Who is in the way may leave. */
static void hold_joined_retry(Hold *h) {
        hold_joined_end_measuring(h);
        hold_step_after(h, h->joined_retry_usec);
        h->joined_retry_usec = MIN(2 * h->joined_retry_usec, RETRY_MAX_USEC);
}

static void hold_joined_scanned(void *userdata, int r, const User *users, size_t n_users,
                                bool complete) {
        Hold *h = userdata;

        h->scan = NULL;
        if (r == 0 && complete && hold_probe_explain(h, users, n_users) &&
            h->n_explanations++ < EXPLANATIONS_MAX) {
                hold_drop_probe(h);
                hold_step_after(h, 0);
        } else if (hold_ask_for_more(h)) {
                hold_stop_measuring(h);
                hold_step_after(h, 0);
        } else
                hold_joined_retry(h);
}

/* It may have gone again. */
static void hold_joined_measured(Hold *h) {
        if (!hold_probe_confirms(h) && !probe_is_offline(h->probe)) {
                if (!hold_probe_lacks(h) ||
                    reader_scan(h->context->reader, hold_joined_scanned, h, &h->scan) < 0)
                        hold_joined_retry(h);
                return;
        }
        hold_joined_end_measuring(h);
        cpuset_clear(&h->joined);
        hold_set_confirmed(h, true);
}

/* Others are measured, or monitors that were told to go are on their way. */
static bool hold_joined_must_wait(const Hold *h) {
        const Yielders *yielders = &h->context->yielders;

        if (hold_probes_beside(h))
                return true;
        return now_usec(CLOCK_MONOTONIC) < h->yield_until_usec &&
               yielders_asked(yielders, &h->request.what.scope, NULL, NULL) > 0;
}

void hold_joined_stepped(Hold *h) {
        int r = 0;

        if (h->scan)
                return;
        if (cpuset_is_empty(&h->joined)) {
                hold_stop_measuring(h);
                return;
        }
        if (!h->probe && hold_joined_must_wait(h)) {
                hold_step_after(h, PROBE_STEP_USEC);
                return;
        }
        if (!h->probe)
                r = hold_probe_begin(h, &h->joined);
        if (r >= 0)
                r = hold_probe_look(h);
        if (r < 0)
                hold_joined_retry(h);
        else if (r > 0)
                hold_joined_measured(h);
}

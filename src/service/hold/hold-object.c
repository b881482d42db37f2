/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-object.h"

#include <string.h>

Hold *hold_find(const Holds *holds, uint64_t id) {
        Object *o = objects_find(&holds->objects, id);

        return o ? hold_of_object(o) : NULL;
}

Hold *hold_find_tagged(const Holds *holds, uid_t maker, const char *tag) {
        LedgerHold *l;

        TAILQ_FOREACH (l, &holds->context->ledger.holds, list) {
                Hold *h = hold_of_ledger(l);

                if (h->maker == maker && h->request.tag && strcmp(h->request.tag, tag) == 0)
                        return h;
        }
        return NULL;
}

unsigned hold_queue_position(const Hold *h) {
        return (unsigned) ledger_position(&h->ledger);
}

const char *hold_state_name(HoldState state) {
        static const char *const names[_HOLD_STATE_MAX] = {
                [HOLD_QUEUED] = "queued",
                [HOLD_YIELDING] = "yielding",
                [HOLD_GRANTED] = "granted",
                [HOLD_ENDED] = "ended",
        };
        return names[state];
}

const char *hold_result_name(HoldResult result) {
        static const char *const names[_HOLD_RESULT_MAX] = {
                [HOLD_NONE] = "",
                [HOLD_RELEASED] = "released",
                [HOLD_LEASE_CLOSED] = "lease-closed",
                [HOLD_EXPIRED] = "expired",
                [HOLD_TIMED_OUT] = "timed-out",
                [HOLD_OBSTRUCTED] = "obstructed",
                [HOLD_REVOKED] = "revoked",
        };
        return names[result];
}

/* ---- the probe ---- */

void hold_drop_probe(Hold *h) {
        if (h->probe)
                LIST_REMOVE(h, measured);
        h->probe = probe_free(h->probe);
        free(TAKE_PTR(h->usable));
}

void hold_stop_measuring(Hold *h) {
        hold_drop_probe(h);
        free(TAKE_PTR(h->explained));
        h->n_explained = 0;
        h->scan = reader_job_cancel(h->scan);
}

static void hold_free_obstacles(Hold *h) {
        for (size_t i = 0; i < h->n_obstacles; i++)
                free(h->obstacles[i].who);
        free(h->obstacles);
}

Hold *hold_free(Hold *h) {
        if (!h)
                return NULL;
        hold_stop_measuring(h);
        ledger_remove(&h->context->ledger, &h->ledger);
        hold_free_obstacles(h);
        sd_event_source_disable_unref(h->lease_source);
        sd_event_source_disable_unref(h->step);
        sd_event_source_disable_unref(h->expiry);
        close_fd(h->lease);
        quota_release(&h->charge);
        hold_request_done(&h->request);
        free(h->client);
        cpuset_done(&h->joined);
        free(h->promised);
        object_leave(&h->object, &h->holds->objects);
        free(h);
        return NULL;
}

Hold *hold_discard(Hold *h) {
        if (h)
                store_leave(&h->item);
        return hold_free(h);
}

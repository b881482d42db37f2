/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-history.h"

#include "service/hold/hold-signals.h"
#include "service/hold/hold-store.h"

/* Removes an ended hold for good: it is an unknown object from now on. */
static void hold_forget(Hold *h) {
        Holds *holds = h->holds;

        hold_signal_removed(h);
        TAILQ_REMOVE(&holds->ended, h, list);
        hold_discard(h);
        context_touch(holds->context);
}

void holds_forget_later(Holds *holds) {
        const Hold *oldest = TAILQ_FIRST(&holds->ended);

        if (!oldest)
                return;
        (void) sd_event_source_set_time(holds->forget, oldest->ended_usec + HOLD_READABLE_USEC);
        (void) sd_event_source_set_enabled(holds->forget, SD_EVENT_ONESHOT);
}

static int holds_forget_old(sd_event_source *source, uint64_t usec, void *userdata) {
        Holds *holds = userdata;
        Hold *h;

        while ((h = TAILQ_FIRST(&holds->ended)) && h->ended_usec + HOLD_READABLE_USEC <= usec)
                hold_forget(h);
        if (!h)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        (void) sd_event_source_set_time(source, h->ended_usec + HOLD_READABLE_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void hold_retire(Hold *h) {
        Holds *holds = h->holds;
        Hold *oldest;

        TAILQ_INSERT_TAIL(&holds->ended, h, list);
        if (TAILQ_FIRST(&holds->ended) == h)
                holds_forget_later(holds);
        quota_release(&h->charge);
        if (quota_charge(&holds->context->quota, h->object.uid, QUOTA_ENDED_HOLDS, 1, &h->charge,
                         NULL) == 0)
                return;
        TAILQ_FOREACH (oldest, &holds->ended, list)
                if (oldest->object.uid == h->object.uid)
                        break;
        hold_forget(oldest);
        if (oldest != h)
                (void) quota_charge(&holds->context->quota, h->object.uid, QUOTA_ENDED_HOLDS, 1,
                                    &h->charge, NULL);
}

int hold_history_init(Holds *holds) {
        int r;

        TAILQ_INIT(&holds->ended);
        r = sd_event_add_time(holds->context->event, &holds->forget, CLOCK_MONOTONIC, 0,
                              USEC_PER_SEC, holds_forget_old, holds);
        return r < 0 ? r : sd_event_source_set_enabled(holds->forget, SD_EVENT_OFF);
}

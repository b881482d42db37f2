/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-history.h"

#include "service/hold/hold-signals.h"
#include "service/hold/hold-store.h"

/* Removes an ended hold for good: from now on it is UnknownObject. */
static void hold_forget(Hold *h) {
        Service *s = h->service;

        hold_signal_removed(h);
        TAILQ_REMOVE(&s->ended, h, list);
        hold_discard(h);
        service_touch(s);
}

void holds_forget_later(Service *s) {
        const Hold *oldest = TAILQ_FIRST(&s->ended);

        if (!oldest)
                return;
        (void) sd_event_source_set_time(s->forget, oldest->ended_usec + HOLD_READABLE_USEC);
        (void) sd_event_source_set_enabled(s->forget, SD_EVENT_ONESHOT);
}

static int holds_forget_old(sd_event_source *source, uint64_t usec, void *userdata) {
        Service *s = userdata;
        Hold *h;

        while ((h = TAILQ_FIRST(&s->ended)) && h->ended_usec + HOLD_READABLE_USEC <= usec)
                hold_forget(h);
        if (!h)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        (void) sd_event_source_set_time(source, h->ended_usec + HOLD_READABLE_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void hold_retire(Hold *h) {
        Service *s = h->service;
        Hold *oldest;

        TAILQ_INSERT_TAIL(&s->ended, h, list);
        if (TAILQ_FIRST(&s->ended) == h)
                holds_forget_later(s);
        quota_release(&h->charge);
        if (quota_charge(&s->quota, h->uid, QUOTA_ENDED_HOLDS, 1, &h->charge, NULL) == 0)
                return;
        TAILQ_FOREACH (oldest, &s->ended, list)
                if (oldest->uid == h->uid)
                        break;
        hold_forget(oldest);
        if (oldest != h)
                (void) quota_charge(&s->quota, h->uid, QUOTA_ENDED_HOLDS, 1, &h->charge, NULL);
}

int hold_history_init(Service *s) {
        int r;

        TAILQ_INIT(&s->ended);
        r = sd_event_add_time(s->event, &s->forget, CLOCK_MONOTONIC, 0, USEC_PER_SEC,
                              holds_forget_old, s);
        return r < 0 ? r : sd_event_source_set_enabled(s->forget, SD_EVENT_OFF);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-time.h"

#include "core/clock.h"
#include "service/hold/hold-admission.h"

void hold_set_end(Hold *h) {
        uint64_t lifetime = h->request.lifetime_usec;

        if (usec_add(h->requested_usec, lifetime) == UINT64_MAX)
                return;
        h->expires_usec = h->requested_usec + lifetime;
        h->expires_boottime_usec =
                usec_add(now_usec(CLOCK_BOOTTIME) - h->request.age_usec, lifetime);
}

static int hold_expired(sd_event_source *source, uint64_t usec, void *userdata) {
        hold_end(userdata, HOLD_EXPIRED);
        return 0;
}

/* The time of the present step is over: of the wait, of the monitors, or until the probe's next
 * look. */
static int hold_stepped(sd_event_source *source, uint64_t usec, void *userdata) {
        Hold *h = userdata;

        if (h->state == HOLD_QUEUED)
                hold_end(h, HOLD_TIMED_OUT);
        else if (h->state == HOLD_GRANTED)
                hold_admission_joined(h);
        else
                holds_advance(h->service);
        return 0;
}

void hold_step_at(Hold *h, uint64_t usec) {
        if (!h->step)
                return;
        if (usec == UINT64_MAX) {
                (void) sd_event_source_set_enabled(h->step, SD_EVENT_OFF);
                return;
        }
        (void) sd_event_source_set_time(h->step, usec);
        (void) sd_event_source_set_enabled(h->step, SD_EVENT_ONESHOT);
}

int hold_add_timers(Hold *h) {
        Service *s = h->service;
        int r;

        r = sd_event_add_time(s->event, &h->step, CLOCK_MONOTONIC, 0, 1, hold_stepped, h);
        if (r < 0)
                return r;
        (void) sd_event_source_set_enabled(h->step, SD_EVENT_OFF);
        if (h->expires_boottime_usec == 0)
                return 0;
        return sd_event_add_time(s->event, &h->expiry, CLOCK_BOOTTIME, h->expires_boottime_usec,
                                 USEC_PER_MSEC, hold_expired, h);
}

void hold_set_deadline(Hold *h) {
        h->yield_until_usec =
                usec_add(now_usec(CLOCK_MONOTONIC),
                         MAX(h->request.yield_usec, yielders_grace(&h->service->roster)));
}

void hold_give_time(Hold *h) {
        hold_set_deadline(h);
        hold_step_at(h, h->yield_until_usec);
}

void hold_await_turn(Hold *h) {
        hold_step_at(h, usec_add(h->admitted_usec - h->request.age_usec, h->request.wait_usec));
}

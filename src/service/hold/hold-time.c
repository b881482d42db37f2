/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-time.h"

#include "core/clock.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-store.h"

void hold_set_end(Hold *h) {
        uint64_t lifetime = h->request.lifetime_usec;

        if (usec_add(h->requested_usec, lifetime) == UINT64_MAX)
                return;
        h->expires_usec = h->requested_usec + lifetime;
        h->expires_boottime_usec =
                usec_add(now_usec(CLOCK_BOOTTIME) - h->request.age_usec, lifetime);
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

static void hold_await_expiry(Hold *h) {
        uint64_t due = h->expires_boottime_usec;

        if (!h->warned)
                due -= MIN(due, HOLD_WARNING_USEC);
        (void) sd_event_source_set_time(h->expiry, due);
        (void) sd_event_source_set_enabled(
                h->expiry, h->expires_boottime_usec > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

bool hold_warn(Hold *h) {
        if (h->warned)
                return false;
        h->warned = true;
        hold_save(h);
        hold_signal_expiring(h);
        hold_await_expiry(h);
        return true;
}

void hold_extend(Hold *h, uint64_t lifetime_usec) {
        uint64_t expires = usec_add(now_usec(CLOCK_REALTIME), lifetime_usec);

        h->expires_usec = expires == UINT64_MAX ? 0 : expires;
        h->expires_boottime_usec =
                expires == UINT64_MAX ? 0 : usec_add(now_usec(CLOCK_BOOTTIME), lifetime_usec);
        h->warned = false;
        hold_await_expiry(h);
        hold_save(h);
        hold_signal_expiry(h);
}

int hold_add_timers(Hold *h, sd_event_time_handler_t stepped, sd_event_time_handler_t expired) {
        Holds *holds = h->holds;
        int r;

        r = sd_event_add_time(holds->context->event, &h->step, CLOCK_MONOTONIC, 0, 1, stepped, h);
        if (r < 0)
                return r;
        (void) sd_event_source_set_enabled(h->step, SD_EVENT_OFF);
        r = sd_event_add_time(holds->context->event, &h->expiry, CLOCK_BOOTTIME, 0, USEC_PER_MSEC,
                              expired, h);
        if (r >= 0)
                hold_await_expiry(h);
        return r;
}

void hold_set_deadline(Hold *h) {
        h->yield_until_usec =
                usec_add(now_usec(CLOCK_MONOTONIC),
                         MAX(h->request.yield_usec, yielders_grace(&h->context->yielders)));
}

void hold_await_yield(Hold *h) {
        hold_set_deadline(h);
        hold_step_at(h, h->yield_until_usec);
}

void hold_await_queue(Hold *h) {
        hold_step_at(h, usec_add(h->admitted_usec - h->request.age_usec, h->request.wait_usec));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "service/counter/counter-store.h"
#include "service/hold/hold-admission.h"
#include "service/hold/hold-history.h"
#include "service/hold/hold-obstacles.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-store.h"
#include "service/hold/hold-time.h"
#include "service/hold/hold-waiter.h"
#include "service/monitor/bridges.h"
#include "service/util/lease.h"

static int compare_holds(const void *a, const void *b) {
        const Hold *x = a, *y = b;

        return x->id < y->id ? -1 : x->id > y->id;
}

Hold *hold_find(Service *s, uint64_t id) {
        Hold key = { .id = id };
        Hold **found = tfind(&key, &s->holds, compare_holds);

        return found ? *found : NULL;
}

static Hold *hold_of(LedgerHold *l) {
        return container_of(l, Hold, ledger);
}

unsigned hold_queue_position(const Hold *h) {
        return (unsigned) ledger_position(&h->ledger);
}

/* What is kept of it stays with systemd. */
static Hold *hold_free(Hold *h) {
        if (!h)
                return NULL;
        hold_admission_stop(h);
        ledger_remove(&h->service->ledger, &h->ledger);
        hold_obstacles_clear(h);
        sd_event_source_disable_unref(h->lease_source);
        sd_event_source_disable_unref(h->step);
        sd_event_source_disable_unref(h->expiry);
        close_fd(h->lease);
        quota_release(&h->charge);
        hold_request_done(&h->request);
        cpuset_done(&h->joined);
        free(h->path);
        free(h);
        return NULL;
}

Hold *hold_discard(Hold *h) {
        if (!h)
                return NULL;
        store_leave(&h->item);
        if (h->path)
                (void) tdelete(h, &h->service->holds, compare_holds);
        return hold_free(h);
}

static int lease_closed(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        hold_end(userdata, HOLD_LEASE_CLOSED);
        return 0;
}

int hold_watch_lease(Hold *h, int lease) {
        int r = lease_watch(h->service->event, lease, &h->lease_source, lease_closed, h);

        if (r >= 0)
                h->lease = lease;
        return r;
}

int hold_name(Hold *h, uint64_t id) {
        char *path;

        if (asprintf(&path, PERFALLOC_OBJECT_PATH "/hold/%" PRIu64, id) < 0)
                return -ENOMEM;
        h->id = id;
        if (!tsearch(h, &h->service->holds, compare_holds)) {
                free(path);
                return -ENOMEM;
        }
        h->path = path;
        return 0;
}

void hold_enter_store(Hold *h) {
        store_enter(h->service->store, &h->item, STORE_HOLD, h->id);
        if (h->lease >= 0)
                store_keep(&h->item, &h->lease, 1, STORE_SOON);
        hold_save(h);
}

static void hold_set_ledger(Hold *h) {
        h->ledger.scope = h->request.what.scope;
        h->ledger.exclusive = h->request.exclusive;
        h->ledger.counters = h->request.exclusive ? 0 : h->request.counters;
}

static int hold_enter_ledger(Hold *h, Refusal *why) {
        Service *s = h->service;
        int r;

        hold_set_ledger(h);
        r = ledger_admit(&s->ledger, &h->ledger, h->request.wait_usec > 0);

        if (r == LEDGER_E_WOULD_WAIT)
                return hold_refuse_busy(h, why);
        if (r == LEDGER_E_TOO_MANY)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "option 'counters': %u is more than a PMU of the scope has",
                              h->request.counters);
        return MIN(r, 0);
}

int hold_enter_ledger_again(Hold *h) {
        Service *s = h->service;
        int r;

        hold_set_ledger(h);
        r = ledger_admit(&s->ledger, &h->ledger, h->state == HOLD_QUEUED);
        if (r < 0)
                return r;
        if (h->ledger.state == LEDGER_NONE)
                return -ESTALE;
        if (h->state == HOLD_QUEUED && h->ledger.state == LEDGER_ACTIVE)
                h->state = HOLD_YIELDING; /* the one before has gone while we were away */
        if (h->state == HOLD_YIELDING)
                TAILQ_INSERT_TAIL(&s->pending, h, list);
        return 0;
}

/* The ledger has admitted it: monitors are to give way from now on. */
static void hold_start(Hold *h) {
        h->state = HOLD_YIELDING;
        TAILQ_INSERT_TAIL(&h->service->pending, h, list);
        hold_step_at(h, h->yield_until_usec);
        hold_save(h);
}

void holds_apply(Service *s, const Hold *cause, uint64_t deadline_usec) {
        if (yielders_apply(&s->roster, cause ? cause->id : 0, deadline_usec, NULL) < 0)
                hold_signal_degraded("out of memory while monitors were told to yield or resume");
        bridges_hold_changed(s);
}

void hold_begin(Hold *h) {
        if (h->ledger.state != LEDGER_ACTIVE) {
                hold_await_turn(h);
                return;
        }
        hold_start(h);
        hold_signal_state(h);
        holds_advance(h->service);
}

/* Out of the ledger, and whoever waited for it comes in; monitors are told once, of the sum of
 * both. */
static void hold_leave_ledger(Hold *h) {
        Service *s = h->service;
        Hold *first = NULL, *next;
        uint64_t deadline = 0;
        LedgerHold *l;

        ledger_remove(&s->ledger, &h->ledger);
        while ((l = ledger_next(&s->ledger))) {
                next = hold_of(l);
                hold_set_deadline(next);
                hold_start(next);
                first = first ?: next;
                deadline = MAX(deadline, next->yield_until_usec);
        }
        holds_apply(s, first, deadline);
        for (next = first; next; next = TAILQ_NEXT(next, list))
                hold_signal_state(next);
}

/* Monitors give way, and it is seen whether that was all there was to do. */
static void hold_clear_scope(Hold *h) {
        if (h->ledger.state != LEDGER_ACTIVE)
                return;
        hold_set_deadline(h);
        holds_apply(h->service, h, h->yield_until_usec);
        hold_look_ahead(h);
}

/* The lease and the timers. */
static int hold_equip(Hold *h, int *ret_lease) {
        _cleanup_close_ int lease = -1;
        int r = 0;

        if (ret_lease)
                r = lease_new(h->service->event, &h->lease, &h->lease_source, lease_closed, h,
                              &lease);
        if (r < 0)
                return r;
        hold_set_end(h);
        r = hold_add_timers(h);
        if (r < 0)
                return r;
        if (ret_lease)
                *ret_lease = TAKE_FD(lease);
        return 0;
}

/* That monitors give way is what will be waited for, so it comes first. */
static int hold_build(Hold *h, int *ret_lease, Refusal *why) {
        Service *s = h->service;
        int r;

        r = quota_charge(&s->quota, h->uid, QUOTA_HOLDS, 1, &h->charge, why);
        if (r == 0)
                r = hold_enter_ledger(h, why);
        if (r == 0)
                r = hold_name(h, serial_next(&s->serial, SERIAL_HOLD));
        if (r != 0)
                return r;
        hold_clear_scope(h);
        r = hold_equip(h, ret_lease);
        if (r < 0) {
                hold_leave_ledger(h);
                return r;
        }
        hold_enter_store(h);
        return 0;
}

int hold_new(Service *s, const Peer *peer, HoldRequest *request, Hold **ret, int *ret_lease,
             Refusal *why) {
        _cleanup_(hold_discardp) Hold *h = calloc(1, sizeof(Hold));
        int r;

        if (!h) {
                hold_request_done(request);
                return -ENOMEM;
        }
        *h = (Hold){
                .service = s,
                .uid = peer->uid,
                .pid = peer->pid,
                .request = *request,
                .requested_usec = now_usec(CLOCK_REALTIME) - request->age_usec,
                .admitted_usec = now_usec(CLOCK_MONOTONIC),
                .lease = -1,
        };
        *request = HOLD_REQUEST_NULL;
        r = hold_build(h, ret_lease, why);
        if (r != 0)
                return r;
        s->n_holds++;
        service_touch(s);
        *ret = TAKE_PTR(h);
        return 0;
}

void hold_grant(Hold *h, bool confirmed) {
        Service *s = h->service;
        uint64_t now = now_usec(CLOCK_MONOTONIC);

        hold_admission_stop(h);
        TAILQ_REMOVE(&s->pending, h, list);
        TAILQ_INSERT_TAIL(&s->granted, h, list);
        counters_hold_changed(s, h->uid);
        h->state = HOLD_GRANTED;
        h->confirmed = confirmed;
        h->latency_usec = (h->free_usec ?: now) - h->admitted_usec;
        h->granted_usec = now_usec(CLOCK_REALTIME) - (h->free_usec ? now - h->free_usec : 0);
        (void) sd_event_source_set_enabled(h->step, SD_EVENT_OFF);
        hold_cover(h, true);
        hold_save(h);
        hold_signal_granted(h);
        hold_answer_waiters(h);
        if (TAILQ_FIRST(&s->granted) == h && !TAILQ_NEXT(h, list))
                hold_signal_yielding(s);
        hold_log_granted(h);
}

void hold_end(Hold *h, HoldResult result) {
        Service *s = h->service;
        HoldState was = h->state;

        if (was == HOLD_ENDED)
                return;
        hold_admission_stop(h);
        if (was == HOLD_GRANTED) {
                hold_cover(h, false);
                TAILQ_REMOVE(&s->granted, h, list);
                counters_hold_changed(s, h->uid);
        } else if (was == HOLD_YIELDING)
                TAILQ_REMOVE(&s->pending, h, list);
        if (result == HOLD_TIMED_OUT)
                hold_add_blockers(h);
        h->state = HOLD_ENDED;
        h->result = result;
        h->lease_source = sd_event_source_disable_unref(h->lease_source);
        h->step = sd_event_source_disable_unref(h->step);
        h->expiry = sd_event_source_disable_unref(h->expiry);
        h->lease = close_fd(h->lease);
        if (h->item.store)
                store_keep(&h->item, NULL, 0, STORE_SOON);
        h->ended_usec = now_usec(CLOCK_MONOTONIC);
        hold_save(h);
        s->n_holds--;

        hold_leave_ledger(h);
        hold_signal_state(h);
        hold_answer_waiters(h);
        hold_signal_ended(h);
        if (was == HOLD_GRANTED && TAILQ_EMPTY(&s->granted))
                hold_signal_yielding(s);
        hold_log_ended(h);
        hold_retire(h);
        holds_advance(s);
}

uint64_t holds_current(Service *s) {
        const Hold *h = TAILQ_FIRST(&s->granted) ?: TAILQ_FIRST(&s->pending);

        return h ? h->id : 0;
}

bool holds_grants(Service *s, uid_t uid, const Pmu *pmu) {
        Hold *h;

        TAILQ_FOREACH (h, &s->granted, list)
                if (h->uid == uid && scope_find(&h->request.what.scope, pmu->index))
                        return true;
        return false;
}

int holds_init(Service *s) {
        TAILQ_INIT(&s->pending);
        TAILQ_INIT(&s->granted);
        return hold_history_init(s);
}

static void hold_done(void *h) {
        hold_free(h);
}

void holds_done(Service *s) {
        tdestroy(s->holds, hold_done);
        s->holds = NULL;
        /* monitors and counters that go after them still look */
        TAILQ_INIT(&s->pending);
        TAILQ_INIT(&s->granted);
        TAILQ_INIT(&s->ended);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "service/bridges.h"
#include "service/hold-measure.h"
#include "service/hold-obstacles.h"
#include "service/hold-store.h"
#include "service/hold-tell.h"
#include "service/lease.h"

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

static void waiter_free(HoldWaiter *w) {
        LIST_REMOVE(w, waiters);
        quota_release(&w->call);
        peer_unref(w->peer);
        sd_bus_message_unref(w->m);
        free(w);
}

/* What is kept of it stays with systemd. */
static Hold *hold_free(Hold *h) {
        HoldWaiter *w;

        if (!h)
                return NULL;
        while ((w = LIST_FIRST(&h->waiters)))
                waiter_free(w);
        hold_measure_stop(h);
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

/* Removes an ended hold for good: from now on it is UnknownObject. */
static void hold_forget(Hold *h) {
        Service *s = h->service;

        hold_tell_removed(h);
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

/* Keeps an ended hold readable for a while. */
static void hold_retire(Hold *h) {
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

static int lease_closed(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        hold_end(userdata, HOLD_LEASE_CLOSED);
        return 0;
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
                hold_measure_joined(h);
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

static void hold_set_end(Hold *h) {
        uint64_t lifetime = h->request.lifetime_usec;

        if (usec_add(h->requested_usec, lifetime) == UINT64_MAX)
                return;
        h->expires_usec = h->requested_usec + lifetime;
        h->expires_boottime_usec =
                usec_add(now_usec(CLOCK_BOOTTIME) - h->request.age_usec, lifetime);
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

static void hold_set_deadline(Hold *h) {
        h->yield_until_usec =
                usec_add(now_usec(CLOCK_MONOTONIC),
                         MAX(h->request.yield_usec, roster_grace(&h->service->roster)));
}

void hold_give_time(Hold *h) {
        hold_set_deadline(h);
        hold_step_at(h, h->yield_until_usec);
}

/* The ledger has admitted it: monitors are to give way from now on. */
static void hold_start(Hold *h) {
        h->state = HOLD_YIELDING;
        TAILQ_INSERT_TAIL(&h->service->pending, h, list);
        hold_step_at(h, h->yield_until_usec);
        hold_save(h);
}

void hold_await_turn(Hold *h) {
        hold_step_at(h, usec_add(h->admitted_usec - h->request.age_usec, h->request.wait_usec));
}

void holds_apply(Service *s, const Hold *cause, uint64_t deadline_usec) {
        if (roster_apply(&s->roster, cause ? cause->id : 0, deadline_usec, NULL) < 0)
                hold_tell_degraded("out of memory while monitors were told to yield or resume");
        bridges_hold_changed(s);
}

void hold_begin(Hold *h) {
        if (h->ledger.state != LEDGER_ACTIVE) {
                hold_await_turn(h);
                return;
        }
        hold_start(h);
        hold_tell_state(h);
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
                hold_tell_state(next);
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

static void hold_answer_waiters(Hold *h) {
        HoldWaiter *w;

        while ((w = LIST_FIRST(&h->waiters))) {
                hold_tell_waiter(h, w->m);
                waiter_free(w);
        }
}

void hold_grant(Hold *h, bool confirmed) {
        Service *s = h->service;
        uint64_t now = now_usec(CLOCK_MONOTONIC);

        hold_measure_stop(h);
        TAILQ_REMOVE(&s->pending, h, list);
        TAILQ_INSERT_TAIL(&s->granted, h, list);
        h->state = HOLD_GRANTED;
        h->confirmed = confirmed;
        h->latency_usec = (h->free_usec ?: now) - h->admitted_usec;
        h->granted_usec = now_usec(CLOCK_REALTIME) - (h->free_usec ? now - h->free_usec : 0);
        (void) sd_event_source_set_enabled(h->step, SD_EVENT_OFF);
        hold_cover(h, true);
        hold_save(h);
        hold_tell_granted(h);
        hold_answer_waiters(h);
        if (TAILQ_FIRST(&s->granted) == h && !TAILQ_NEXT(h, list))
                hold_tell_yielding(s);
        hold_log_granted(h);
}

void hold_end(Hold *h, HoldResult result) {
        Service *s = h->service;
        HoldState was = h->state;

        if (was == HOLD_ENDED)
                return;
        hold_measure_stop(h);
        if (was == HOLD_GRANTED) {
                hold_cover(h, false);
                TAILQ_REMOVE(&s->granted, h, list);
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
        hold_tell_state(h);
        hold_answer_waiters(h);
        hold_tell_ended(h);
        if (was == HOLD_GRANTED && TAILQ_EMPTY(&s->granted))
                hold_tell_yielding(s);
        hold_log_ended(h);
        hold_retire(h);
        holds_advance(s);
}

int hold_wait(Hold *h, Peer *peer, sd_bus_message *m, Refusal *why) {
        HoldWaiter *w;
        int r;

        if (h->state == HOLD_GRANTED || h->state == HOLD_ENDED) {
                hold_tell_waiter(h, m);
                return 0;
        }
        w = calloc(1, sizeof(HoldWaiter));
        if (!w)
                return -ENOMEM;
        r = quota_charge(&h->service->quota, peer->uid, QUOTA_CALLS, 1, &w->call, why);
        if (r != 0) {
                free(w);
                return r;
        }
        w->m = sd_bus_message_ref(m);
        w->peer = peer_ref(peer);
        LIST_INSERT_HEAD(&h->waiters, w, waiters);
        return 0;
}

static void waiters_forget_peer(Hold *h, const Peer *peer) {
        HoldWaiter *w, *next;

        for (w = LIST_FIRST(&h->waiters); w; w = next) {
                next = LIST_NEXT(w, waiters);
                if (w->peer == peer)
                        waiter_free(w);
        }
}

static void forget_peer_in(const void *node, VISIT which, void *peer) {
        if (which == postorder || which == leaf)
                waiters_forget_peer(*(Hold *const *) node, peer);
}

void holds_forget_peer(Service *s, Peer *peer) {
        /* only a peer that awaits an answer can have waiters */
        if (quota_used(&s->quota, peer->uid, QUOTA_CALLS) > 0)
                twalk_r(s->holds, forget_peer_in, peer);
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
        int r;

        TAILQ_INIT(&s->pending);
        TAILQ_INIT(&s->granted);
        TAILQ_INIT(&s->ended);
        r = sd_event_add_time(s->event, &s->forget, CLOCK_MONOTONIC, 0, USEC_PER_SEC,
                              holds_forget_old, s);
        return r < 0 ? r : sd_event_source_set_enabled(s->forget, SD_EVENT_OFF);
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

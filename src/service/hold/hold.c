/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "service/hold/hold-claims.h"
#include "service/hold/hold-history.h"
#include "service/hold/hold-joined.h"
#include "service/hold/hold-obstacles.h"
#include "service/hold/hold-probe.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-store.h"
#include "service/hold/hold-time.h"
#include "service/hold/hold-waiter.h"
#include "service/util/lease.h"

/* Measured again, because holders could have what was missing; and then something else was. */
#define EXPLANATIONS_MAX 8u

/* ---- timers and the lease ---- */

static int lease_closed(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        hold_end(userdata, HOLD_LEASE_CLOSED);
        return 0;
}

int hold_watch_lease(Hold *h, int lease) {
        int r = lease_watch(h->context->event, lease, &h->lease_source, lease_closed, h);

        if (r >= 0)
                h->lease = lease;
        return r;
}

static void hold_untied(void *userdata) {
        hold_end(userdata, HOLD_LEASE_CLOSED);
}

int hold_watch_tie(Hold *h) {
        return hold_tie_watch(&h->request.tie, h->context->event, hold_untied, h);
}

static int hold_expired(sd_event_source *source, uint64_t usec, void *userdata) {
        if (!hold_warn(userdata))
                hold_end(userdata, HOLD_EXPIRED);
        return 0;
}

/* The present step is over: the wait, the time to yield, or the pause before the probe's next
 * look. */
static int hold_stepped(sd_event_source *source, uint64_t usec, void *userdata) {
        Hold *h = userdata;

        if (h->state == HOLD_QUEUED)
                hold_end(h, HOLD_TIMED_OUT);
        else {
                if (h->state == HOLD_GRANTED)
                        hold_joined_stepped(h);
                holds_advance(h->holds);
        }
        return 0;
}

int hold_watch_time(Hold *h) {
        return hold_add_timers(h, hold_stepped, hold_expired);
}

/* ---- the ledger ---- */

static int hold_set_ledger(Hold *h) {
        h->ledger.scope = h->request.what.scope;
        h->ledger.exclusive = h->request.exclusive;
        h->ledger.counters = h->request.exclusive ? 0 : h->request.counters;
        return cpuset_make_room(&h->joined, &h->context->pmus.possible);
}

static int hold_enter_ledger(Hold *h, Refusal *why) {
        Holds *holds = h->holds;
        int r = hold_set_ledger(h);

        if (r >= 0)
                r = ledger_admit(&holds->context->ledger, &h->ledger, h->request.wait_usec > 0);
        if (r == LEDGER_E_WOULD_WAIT)
                return hold_refuse_busy(h, why);
        if (r == LEDGER_E_TOO_MANY)
                return hold_refuse_number(h, why);
        return MIN(r, 0);
}

int hold_enter_ledger_again(Hold *h) {
        Holds *holds = h->holds;
        int r = hold_set_ledger(h);

        if (r >= 0)
                r = ledger_admit_again(&holds->context->ledger, &h->ledger,
                                       h->state != HOLD_QUEUED);
        if (r < 0)
                return r;
        if (h->state == HOLD_QUEUED && h->ledger.state == LEDGER_ACTIVE)
                h->state = HOLD_YIELDING; /* the hold ahead has ended between the two runs */
        if (h->state == HOLD_YIELDING)
                TAILQ_INSERT_TAIL(&holds->pending, h, list);
        return 0;
}

/* The ledger has admitted it: yielders are asked from now on. */
static void hold_start(Hold *h) {
        h->state = HOLD_YIELDING;
        TAILQ_INSERT_TAIL(&h->holds->pending, h, list);
        hold_step_at(h, h->yield_until_usec);
        hold_save(h);
}

void holds_apply(Holds *holds, const Hold *cause, uint64_t deadline_usec) {
        if (yielders_apply(&holds->context->yielders, cause ? cause->object.id : 0, deadline_usec,
                           NULL) < 0)
                hold_signal_degraded("out of memory while monitors were told to yield or resume");
        holds->hooks.changed(holds->userdata);
}

Hold *hold_more_urgent(Hold *a, Hold *b) {
        return a && a->yield_until_usec <= b->yield_until_usec ? a : b;
}

/* What is missing on a slot of theirs is saved with each (ledger_add_missing()). */
static void holds_save_beside(const Hold *h) {
        Hold *other;

        TAILQ_FOREACH (other, &h->holds->granted, list)
                if (!ledger_hold_is_full(&other->ledger) &&
                    scope_overlaps(&other->request.what.scope, &h->request.what.scope))
                        hold_save(other);
}

/* Takes the hold out of the ledger, and starts the holds that waited for it. Yielders are told
 * once, of the result of both. */
static void hold_leave_ledger(Hold *h) {
        Holds *holds = h->holds;
        Hold *first = NULL, *urgent = NULL, *next;
        LedgerHold *l;

        ledger_remove(&holds->context->ledger, &h->ledger);
        while ((l = ledger_next(&holds->context->ledger))) {
                next = hold_of_ledger(l);
                hold_set_deadline(next);
                hold_start(next);
                first = first ?: next;
                urgent = hold_more_urgent(urgent, next);
        }
        holds_apply(holds, urgent, urgent ? urgent->yield_until_usec : 0);
        for (next = first; next; next = TAILQ_NEXT(next, list))
                hold_signal_state(next);
}

/* ---- the grant, and the end ---- */

static void hold_count_grant(const Hold *h) {
        Totals *totals = &h->context->totals;

        totals_add(totals, h->confirmed ? TOTAL_GRANTS_CONFIRMED : TOTAL_GRANTS_UNCONFIRMED, 1);
        totals_add(totals, TOTAL_LATENCY_USEC, h->latency_usec);
        totals_level(totals, LEVEL_HELD, 1);
}

static void hold_count_end(const Hold *h, HoldState was) {
        Totals *totals = &h->context->totals;

        totals_add(totals, TOTAL_HOLDS_RELEASED + (Total) (h->result - HOLD_RELEASED), 1);
        if (was == HOLD_GRANTED)
                totals_level(totals, LEVEL_HELD, -1);
}

static void hold_grant(Hold *h, bool confirmed) {
        Holds *holds = h->holds;
        uint64_t seen = confirmed && h->probe ? probe_seen_usec(h->probe) : 0,
                 granted = seen ?: now_usec(CLOCK_MONOTONIC);

        TAILQ_REMOVE(&holds->pending, h, list);
        TAILQ_INSERT_TAIL(&holds->granted, h, list);
        holds->hooks.granted(holds->userdata, h->object.uid);
        h->confirmed = confirmed;
        hold_set_promised(h);
        h->state = HOLD_GRANTED;
        h->latency_usec = granted - h->admitted_usec;
        h->granted_usec = usec_realtime_of(granted);
        hold_stop_measuring(h);
        (void) sd_event_source_set_enabled(h->step, SD_EVENT_OFF);
        hold_save(h);
        hold_signal_granted(h);
        hold_answer_waiters(h);
        if (TAILQ_FIRST(&holds->granted) == h && !TAILQ_NEXT(h, list))
                hold_signal_yielding(holds);
        hold_log_granted(h);
        hold_count_grant(h);
        context_touch(h->context);
}

void hold_end(Hold *h, HoldResult result) {
        Holds *holds = h->holds;
        HoldState was = h->state;

        if (was == HOLD_ENDED)
                return;
        hold_stop_measuring(h);
        if (was == HOLD_GRANTED) {
                TAILQ_REMOVE(&holds->granted, h, list);
                holds->hooks.granted(holds->userdata, h->object.uid);
        } else if (was == HOLD_YIELDING)
                TAILQ_REMOVE(&holds->pending, h, list);
        if (result == HOLD_TIMED_OUT)
                hold_add_blockers(h);
        h->state = HOLD_ENDED;
        h->result = result;
        h->lease_source = sd_event_source_disable_unref(h->lease_source);
        h->step = sd_event_source_disable_unref(h->step);
        h->expiry = sd_event_source_disable_unref(h->expiry);
        h->lease = close_fd(h->lease);
        hold_tie_done(&h->request.tie);
        if (h->item.store)
                store_keep(&h->item, NULL, 0, STORE_SOON);
        h->ended_usec = now_usec(CLOCK_MONOTONIC);
        hold_save(h);
        holds->n_active--;

        holds_save_beside(h);
        hold_leave_ledger(h);
        hold_signal_state(h);
        hold_answer_waiters(h);
        hold_signal_ended(h);
        if (was == HOLD_GRANTED && TAILQ_EMPTY(&holds->granted))
                hold_signal_yielding(holds);
        hold_log_ended(h);
        hold_count_end(h, was);
        hold_retire(h);
        holds_advance(holds);
}

/* ---- what was measured ---- */

static void hold_settle(Hold *h, bool confirmed) {
        if (!confirmed && h->request.best_effort && ledger_hold_is_full(&h->ledger))
                hold_add_missing(h); /* for those beside it, when it has ended */
        if (confirmed || h->request.best_effort)
                hold_grant(h, confirmed);
        else
                hold_end(h, HOLD_OBSTRUCTED);
}

/* Monitors may have been asked meanwhile. */
static void hold_measure_again(Hold *h) {
        hold_drop_probe(h);
        hold_step_at(h, h->yield_until_usec);
}

/* Looks once more, for what was found taken by a process that has left since. */
static bool hold_look_again(Hold *h) {
        bool again = !h->looked_again;

        h->looked_again = true;
        if (again)
                hold_measure_again(h);
        return again;
}

/* Names who may have what is missing: who has no hold, else the holders. */
static void hold_obstructed(Hold *h, const User *users, size_t n_users) {
        for (int holders = 0; holders < 2 && h->n_obstacles == 0; holders++) {
                hold_add_standing(h, holders);
                hold_add_users(h, users, n_users, holders);
        }
        if (h->n_obstacles == 0 && hold_look_again(h))
                return;
        if (h->n_obstacles == 0)
                (void) hold_add_obstacle(h, 0, "the kernel, or a process that cannot be seen");
        hold_set_lack(h);
        hold_settle(h, false);
}

static bool hold_yield_more(Hold *h) {
        if (!hold_ask_for_more(h))
                return false;
        hold_stop_measuring(h);
        hold_step_at(h, h->yield_until_usec);
        return true;
}

static void hold_scanned(void *userdata, int r, const User *users, size_t n_users, bool complete) {
        Hold *h = userdata;
        Holds *holds = h->holds;

        h->scan = NULL;
        if (r == 0 && complete && hold_has_company(h) && hold_probe_explain(h, users, n_users) &&
            h->n_explanations++ < EXPLANATIONS_MAX)
                hold_measure_again(h);
        else if (!hold_yield_more(h))
                hold_obstructed(h, users, r == 0 ? n_users : 0);
        holds_advance(holds);
}

/* The probe found counters taken: processes with open perf events are the candidates. */
static void hold_find_candidates(Hold *h) {
        if (reader_scan(h->context->reader, hold_scanned, h, &h->scan) < 0)
                hold_scanned(h, -EIO, NULL, 0, false);
}

static void hold_measured(Hold *h) {
        if (hold_probe_confirms(h)) {
                if (h->request.exclusive)
                        h->holds->hooks.add_foreign(h->holds->userdata, h);
                hold_settle(h, h->n_obstacles == 0);
        } else if (!probe_can_confirm(h->probe) && !hold_probe_lacks(h)) /* nobody is to blame */
                hold_settle(h, false);
        else if (hold_has_company(h) || !hold_yield_more(h))
                hold_find_candidates(h);
}

static void hold_not_measured(Hold *h) {
        (void) hold_add_obstacle(h, getpid(), "perfallocd is out of memory or descriptors");
        hold_settle(h, false);
}

/* ---- one step further ---- */

/* Takes the hold as far as possible. True: the list of pending holds, or who yields, has
 * changed. */
static bool hold_advance(Hold *h) {
        Holds *holds = h->holds;
        int r = 0;

        /* one that waits for its monitors has a deadline of its own */
        if (h->scan || hold_probes_beside(h))
                return false;
        if (!h->probe) {
                if (yielders_asked(&holds->context->yielders, &h->request.what.scope, NULL, NULL) >
                    0) {
                        /* what the service has not told yet is nobody's delay */
                        if (now_usec(CLOCK_MONOTONIC) < h->yield_until_usec ||
                            yielders_are_busy(&holds->context->yielders))
                                return false;
                        hold_add_asked(h);
                        hold_settle(h, false);
                        return true;
                }
                if (yielders_are_resuming(&holds->context->yielders, &h->request.what.scope))
                        return false;
                r = hold_probe_begin(h, NULL);
        }
        if (r >= 0)
                r = hold_probe_look(h);
        if (r == 0)
                return false;
        if (r < 0)
                hold_not_measured(h);
        else
                hold_measured(h);
        return true;
}

void holds_advance(Holds *holds) {
        Hold *h;

        /* the end of one hold may let others go on, and leads back here */
        holds->advance_again = true;
        if (holds->advancing)
                return;
        holds->advancing = true;
        while (holds->advance_again) {
                holds->advance_again = false;
                TAILQ_FOREACH (h, &holds->pending, list)
                        if (hold_advance(h)) {
                                holds->advance_again = true;
                                break;
                        }
        }
        holds->advancing = false;
}

/* ---- a new one ---- */

/* Looks once before the hold is announced. If all is free, that was the time of the grant. */
static void hold_probe_ahead(Hold *h) {
        if (hold_probes_beside(h) ||
            yielders_asked(&h->context->yielders, &h->request.what.scope, NULL, NULL) > 0 ||
            yielders_are_resuming(&h->context->yielders, &h->request.what.scope))
                return;
        if (hold_probe_begin(h, NULL) < 0)
                hold_stop_measuring(h); /* tried again in hold_advance() */
        else
                (void) hold_probe_look(h);
}

/* Asks yielders. If the counters are free then, the hold is granted as of now. */
static void hold_ask_yielders(Hold *h) {
        if (h->ledger.state != LEDGER_ACTIVE)
                return;
        hold_set_deadline(h);
        holds_apply(h->holds, h, h->yield_until_usec);
        hold_probe_ahead(h);
}

/* Adds the lease, the tie and the timers. */
static int hold_add_lease(Hold *h, int *ret_lease) {
        _cleanup_close_ int lease = -1;
        int r = 0;

        if (ret_lease)
                r = lease_new(h->context->event, &h->lease, &h->lease_source, lease_closed, h,
                              &lease);
        if (r < 0)
                return r;
        hold_set_end(h);
        r = hold_watch_time(h);
        if (r >= 0)
                r = hold_watch_tie(h);
        if (r < 0)
                return r;
        if (ret_lease)
                *ret_lease = TAKE_FD(lease);
        return 0;
}

/* Yielders are asked first, because their answers take longest. */
static int hold_build(Hold *h, int *ret_lease, Refusal *why) {
        Holds *holds = h->holds;
        int r;

        r = quota_charge(&holds->context->quota, h->object.uid, QUOTA_HOLDS, 1, &h->charge, why);
        if (r == 0)
                r = hold_enter_ledger(h, why);
        if (r == 0)
                r = object_enter(&h->object, &holds->objects,
                                 h->request.number
                                         ?: serial_next(&holds->context->serial, SERIAL_HOLD));
        if (r != 0)
                return r;
        hold_ask_yielders(h);
        r = hold_add_lease(h, ret_lease);
        if (r < 0) {
                hold_leave_ledger(h);
                return r;
        }
        hold_enter_store(h);
        return 0;
}

int hold_new(Holds *holds, const Peer *peer, HoldRequest *request, Hold **ret, int *ret_lease,
             Refusal *why) {
        _cleanup_(hold_discardp) Hold *h = calloc(1, sizeof(Hold));
        int r;

        if (!h) {
                hold_request_done(request);
                return -ENOMEM;
        }
        *h = (Hold){
                .object.uid = request->uid,
                .holds = holds,
                .context = holds->context,
                .maker = peer->uid,
                .pid = peer->pid,
                .client = peer->name ? strdup(peer->name) : NULL,
                .request = *request,
                .requested_usec = now_usec(CLOCK_REALTIME) - request->age_usec,
                .admitted_usec = now_usec(CLOCK_MONOTONIC),
                .lease = -1,
        };
        *request = HOLD_REQUEST_NULL;
        r = hold_build(h, ret_lease, why);
        if (r != 0)
                return r;
        holds->n_active++;
        context_touch(holds->context);
        *ret = TAKE_PTR(h);
        return 0;
}

void hold_begin(Hold *h) {
        if (h->ledger.state != LEDGER_ACTIVE) {
                hold_await_queue(h);
                return;
        }
        hold_start(h);
        hold_signal_state(h);
        holds_advance(h->holds);
}

/* ---- all of them ---- */

int holds_init(Holds *holds, Context *context, const HoldsHooks *hooks, void *userdata) {
        holds->context = context;
        holds->hooks = *hooks;
        holds->userdata = userdata;
        TAILQ_INIT(&holds->pending);
        TAILQ_INIT(&holds->granted);
        return hold_history_init(holds);
}

static void holds_free_list(struct HoldList *list) {
        Hold *h;

        while ((h = TAILQ_FIRST(list))) {
                TAILQ_REMOVE(list, h, list);
                hold_free(h);
        }
}

static void hold_free_queued(void *userdata, Object *o) {
        Hold **h = userdata;

        *h = hold_of_object(o);
}

/* Holds that wait in the ledger are in no list. */
void holds_done(Holds *holds) {
        Hold *h;

        if (!holds->context)
                return;
        holds_free_list(&holds->pending);
        holds_free_list(&holds->granted);
        holds_free_list(&holds->ended);
        while (holds->objects.n > 0) {
                objects_walk(&holds->objects, hold_free_queued, &h);
                hold_free(h);
        }
        sd_event_source_disable_unref(holds->forget);
}

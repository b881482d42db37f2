/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-store.h"

#include <inttypes.h>
#include <string.h>

#include "service/hold/hold-admission.h"
#include "service/hold/hold-history.h"
#include "service/hold/hold-obstacles.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-time.h"
#include "service/util/log.h"

static const PackField hold_fields[] = {
        PACK_FIELD(PACK_U32, "uid", Hold, uid),
        PACK_FIELD(PACK_U32, "pid", Hold, pid),
        PACK_FIELD(PACK_STRING, "reason", Hold, request.reason),
        PACK_FIELD(PACK_U32, "counters", Hold, request.counters),
        PACK_FIELD(PACK_BOOL, "exclusive", Hold, request.exclusive),
        PACK_FIELD(PACK_BOOL, "best-effort", Hold, request.best_effort),
        PACK_FIELD(PACK_BOOL, "unattended", Hold, request.unattended),
        PACK_FIELD(PACK_U64, "wait", Hold, request.wait_usec),
        PACK_FIELD(PACK_U64, "yield", Hold, request.yield_usec),
        PACK_FIELD(PACK_U64, "lifetime", Hold, request.lifetime_usec),
        PACK_FIELD(PACK_U64, "age", Hold, request.age_usec),
        PACK_FIELD(PACK_U32, "state", Hold, state),
        PACK_FIELD(PACK_U32, "result", Hold, result),
        PACK_FIELD(PACK_BOOL, "confirmed", Hold, confirmed),
        PACK_FIELD(PACK_U64, "requested", Hold, requested_usec),
        PACK_FIELD(PACK_U64, "granted", Hold, granted_usec),
        PACK_FIELD(PACK_U64, "expires", Hold, expires_usec),
        PACK_FIELD(PACK_U64, "expires-boottime", Hold, expires_boottime_usec),
        PACK_FIELD(PACK_U64, "admitted", Hold, admitted_usec),
        PACK_FIELD(PACK_U64, "latency", Hold, latency_usec),
        PACK_FIELD(PACK_U64, "ended", Hold, ended_usec),
};

static void pack_obstacles(Pack *p, const Hold *h) {
        for (size_t i = 0; i < h->n_obstacles; i++) {
                size_t begin = pack_begin(p, "obstacle");

                pack_u64(p, "pid", (uint32_t) h->obstacles[i].pid);
                pack_string(p, "who", h->obstacles[i].who);
                pack_end(p, begin);
        }
}

void hold_save(Hold *h) {
        Service *s = h->service;
        Pack *p;

        if (!h->item.store)
                return;
        if (h->item.lost)
                store_keep(&h->item, &h->lease, h->lease >= 0, STORE_SOON);
        p = store_pack(s->store);
        pack_struct(p, hold_fields, ELEMENTSOF(hold_fields), h);
        scope_request_pack(p, &h->request.what, &s->pmus);
        /* of a hold of N counters: how many more had to go in each part */
        for (size_t i = 0; h->ledger.extra && i < h->request.what.scope.n_parts; i++) {
                size_t begin = pack_begin(p, "extra");

                pack_u64(p, "more", h->ledger.extra[i]);
                pack_end(p, begin);
        }
        pack_obstacles(p, h);
        store_save(&h->item, p);
}

/* ---- and back ---- */

static int hold_unpack(Hold *h, const Unpack *u) {
        Unpack obstacle;
        size_t place = 0;
        int r;

        r = unpack_struct(u, hold_fields, ELEMENTSOF(hold_fields), h);
        if (r < 0)
                return r;
        if (h->state >= _HOLD_STATE_MAX || h->result >= _HOLD_RESULT_MAX || !h->request.reason)
                return -EBADMSG;
        while (unpack_next(u, "obstacle", &place, &obstacle))
                (void) hold_add_obstacle(h, (pid_t) unpack_u64(&obstacle, "pid", 0),
                                         unpack_string(&obstacle, "who") ?: "");
        return scope_request_unpack(u, &h->service->pmus, &h->request.what);
}

static void hold_unpack_extra(Hold *h, const Unpack *u) {
        size_t place = 0;
        Unpack extra;

        for (size_t i = 0; unpack_next(u, "extra", &place, &extra); i++)
                if (h->ledger.extra && i < h->request.what.scope.n_parts)
                        ledger_set_extra(&h->service->ledger, &h->ledger, i,
                                         (unsigned) unpack_u64(&extra, "more", 0));
}

/* By the time at which they ended, the oldest first. */
static void hold_enlist_ended(Hold *h) {
        struct HoldList *ended = &h->service->ended;
        Hold *later;

        TAILQ_FOREACH (later, ended, list)
                if (later->ended_usec > h->ended_usec) {
                        TAILQ_INSERT_BEFORE(later, h, list);
                        return;
                }
        TAILQ_INSERT_TAIL(ended, h, list);
}

/* Into the ledger, or the list of those that have ended. */
static int hold_enlist(Hold *h, const Unpack *u) {
        Service *s = h->service;
        QuotaGood good = h->state == HOLD_ENDED ? QUOTA_ENDED_HOLDS : QUOTA_HOLDS;
        int r;

        r = quota_charge_anyway(&s->quota, h->uid, good, 1, &h->charge);
        if (r < 0)
                return r;
        if (h->state == HOLD_ENDED) {
                hold_enlist_ended(h);
                return 0;
        }
        r = hold_enter_ledger_again(h);
        if (r < 0)
                return r;
        s->n_holds++;
        hold_unpack_extra(h, u);
        if (h->state == HOLD_GRANTED) {
                TAILQ_INSERT_TAIL(&s->granted, h, list);
                hold_cover(h, true);
        } else if (h->state == HOLD_QUEUED)
                hold_await_turn(h);
        return 0;
}

static int hold_restore_lease(Hold *h, StoreRecord *record) {
        int r;

        if (record->n_fds == 0)
                return 0;
        r = hold_watch_lease(h, record->fds[0]);
        if (r >= 0)
                record->fds[0] = -1; /* the hold has it now */
        return r;
}

static int hold_restore(Service *s, StoreRecord *record) {
        _cleanup_(hold_discardp) Hold *h = calloc(1, sizeof(Hold));
        int r;

        if (!h)
                return -ENOMEM;
        *h = (Hold){ .service = s, .lease = -1 };
        r = hold_unpack(h, &record->state);
        if (r >= 0)
                r = hold_name(h, record->id);
        if (r >= 0 && h->state != HOLD_ENDED)
                r = hold_add_timers(h);
        if (r >= 0)
                r = hold_restore_lease(h, record);
        if (r >= 0)
                r = hold_enlist(h, &record->state);
        if (r < 0)
                return r;
        hold_enter_store(TAKE_PTR(h));
        return 0;
}

static int holds_restore_some(Service *s, bool queued) {
        StoreRecord *record;
        size_t place = 0;

        while ((record = store_next(s->store, STORE_HOLD, &place))) {
                uint64_t state = unpack_u64(&record->state, "state", _HOLD_STATE_MAX);
                int r;

                if ((state == HOLD_QUEUED) != queued)
                        continue;
                r = hold_restore(s, record);
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        log_plain(LOG_ERR, "Hold %" PRIu64 " is lost in the restart: %s",
                                  record->id, strerror(-r));
        }
        return 0;
}

int holds_restore(Service *s) {
        /* numbers are the order of arrival, which is the ledger's */
        int r = holds_restore_some(s, false);

        return r < 0 ? r : holds_restore_some(s, true);
}

void holds_go_on(Service *s) {
        Hold *first = TAILQ_FIRST(&s->pending), *h;
        uint64_t deadline = 0;

        holds_forget_later(s);
        TAILQ_FOREACH (h, &s->granted, list)
                if (h->item.lost) /* there was no room beside what the earlier run had kept */
                        hold_save(h);
        TAILQ_FOREACH (h, &s->pending, list) {
                hold_give_time(h);
                hold_save(h);
                deadline = MAX(deadline, h->yield_until_usec);
        }
        holds_apply(s, first, deadline);
        TAILQ_FOREACH (h, &s->pending, list)
                hold_signal_state(h);
        holds_advance(s);
}

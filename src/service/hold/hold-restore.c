/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-restore.h"

#include "service/bus/host-state.h"
#include "service/hold/hold-history.h"
#include "service/hold/hold-joined.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-store.h"
#include "service/hold/hold-time.h"

static void hold_unpack_extra(Hold *h, const Unpack *u) {
        size_t place = 0;
        Unpack extra;

        while (unpack_next(u, "extra", &place, &extra))
                ledger_add_extra(&h->context->ledger, &h->ledger,
                                 (size_t) unpack_u64(&extra, "slot", SIZE_MAX),
                                 unpack_u64(&extra, "more", 0));
}

/* Sorts it in by the time of its end, oldest first. */
static void hold_enlist_ended(Hold *h) {
        struct HoldList *ended = &h->holds->ended;
        Hold *later;

        TAILQ_FOREACH (later, ended, list)
                if (later->ended_usec > h->ended_usec) {
                        TAILQ_INSERT_BEFORE(later, h, list);
                        return;
                }
        TAILQ_INSERT_TAIL(ended, h, list);
}

/* Puts it into the ledger, or into the list of ended holds. */
static int hold_enlist(Hold *h, const Unpack *u) {
        Holds *holds = h->holds;
        QuotaGood good = h->state == HOLD_ENDED ? QUOTA_ENDED_HOLDS : QUOTA_HOLDS;
        int r;

        r = quota_charge_anyway(&holds->context->quota, h->object.uid, good, 1, &h->charge);
        if (r < 0)
                return r;
        if (h->state == HOLD_ENDED) {
                hold_enlist_ended(h);
                return 0;
        }
        r = hold_enter_ledger_again(h);
        if (r < 0)
                return r;
        holds->n_active++;
        hold_unpack_extra(h, u);
        if (h->state == HOLD_GRANTED) {
                TAILQ_INSERT_TAIL(&holds->granted, h, list);
                totals_level(&holds->context->totals, LEVEL_HELD, 1);
                hold_joined_again(h);
        } else if (h->state == HOLD_QUEUED)
                hold_await_queue(h);
        return 0;
}

/* The lease, then what it is tied to. */
static int hold_restore_fds(Hold *h, StoreRecord *record) {
        bool leased = h->state != HOLD_ENDED && !h->request.unattended;
        bool tied = h->state != HOLD_ENDED && h->request.tie.kind != HOLD_TIE_NONE;
        int r = 0;

        if (record->n_fds != (size_t) leased + tied)
                return -EBADMSG;
        if (leased)
                r = hold_watch_lease(h, record->fds[0]);
        if (r < 0)
                return r;
        if (leased)
                record->fds[0] = -1; /* the hold has it now */
        if (!tied)
                return 0;
        h->request.tie.fd = TAKE_FD(record->fds[leased]);
        return hold_watch_tie(h);
}

static int hold_restore(Holds *holds, StoreRecord *record) {
        _cleanup_(hold_discardp) Hold *h = calloc(1, sizeof(Hold));
        int r;

        if (!h)
                return -ENOMEM;
        *h = (Hold){
                .holds = holds,
                .context = holds->context,
                .request = HOLD_REQUEST_NULL,
                .lease = -1,
        };
        r = hold_unpack(h, &record->state);
        if (!holds->context->host->same_bus)
                free(TAKE_PTR(h->client));
        if (r >= 0)
                r = object_enter(&h->object, &holds->objects, record->id);
        if (r >= 0 && h->state != HOLD_ENDED)
                r = hold_watch_time(h);
        if (r >= 0)
                r = hold_restore_fds(h, record);
        if (r >= 0)
                r = hold_enlist(h, &record->state);
        if (r < 0)
                return r;
        hold_enter_store(TAKE_PTR(h));
        return 0;
}

static bool record_is_queued(const StoreRecord *record) {
        return unpack_u64(&record->state, "state", _HOLD_STATE_MAX) == HOLD_QUEUED;
}

static int hold_restore_active(void *userdata, StoreRecord *record) {
        return record_is_queued(record) ? 0 : hold_restore(userdata, record);
}

static int hold_restore_queued(void *userdata, StoreRecord *record) {
        return record_is_queued(record) ? hold_restore(userdata, record) : 0;
}

/* The numbers are in the order of arrival, as the ledger. */
int holds_restore(Holds *holds) {
        Store *store = holds->context->store;
        int r = store_restore_each(store, STORE_HOLD, "Hold", hold_restore_active, holds);

        return r < 0 ? r
                     : store_restore_each(store, STORE_HOLD, "Hold", hold_restore_queued, holds);
}

void holds_go_on(Holds *holds) {
        Hold *urgent = NULL, *h;

        holds_forget_later(holds);
        TAILQ_FOREACH (h, &holds->pending, list) {
                hold_await_yield(h);
                hold_save(h);
                urgent = hold_more_urgent(urgent, h);
        }
        holds_apply(holds, urgent, urgent ? urgent->yield_until_usec : 0);
        TAILQ_FOREACH (h, &holds->pending, list)
                hold_signal_state(h);
        holds_advance(holds);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager.h"

#include <stdio.h>
#include <string.h>

#include "service/auth/auth.h"
#include "service/auth/redaction.h"
#include "service/bus/bus-end.h"
#include "service/bus/host-state.h"
#include "service/counter/attach-call.h"
#include "service/counter/counter-census.h"
#include "service/counter/counter-closing.h"
#include "service/counter/counter-end.h"
#include "service/counter/counter-gate.h"
#include "service/counter/counter-restore.h"
#include "service/counter/counter-signals.h"
#include "service/counter/counter-store.h"
#include "service/counter/counter-unpin.h"
#include "service/counter/open-call.h"
#include "service/hold/hold-claims.h"
#include "service/hold/hold-obstacles.h"
#include "service/hold/hold-restore.h"
#include "service/monitor/monitor-restore.h"
#include "service/pmu/capacity.h"
#include "service/sampler/sampler-restore.h"
#include "service/util/log.h"

/* ---- what one part tells another ---- */

static void yielder_acknowledged(void *userdata) {
        Manager *m = userdata;

        holds_advance(&m->holds);
}

static void yielders_counted(void *userdata, int change) {
        Manager *m = userdata;

        totals_level(&m->context.totals, LEVEL_YIELDED, change);
}

static void yielders_busy(void *userdata) {
        Manager *m = userdata;

        turn_wait(&m->yielding);
}

static void hold_requested(void *userdata, pid_t pid) {
        Manager *m = userdata;

        bridges_forget_lock(m->bridges, pid);
}

static void holds_changed(void *userdata) {
        Manager *m = userdata;

        if (m->bridges)
                bridges_hold_changed(m->bridges);
}

static void holds_granted(void *userdata, uid_t uid) {
        Manager *m = userdata;

        counters_hold_changed(&m->counters, uid);
        counters_unpin_soon(&m->counters);
        holds_changed(m); /* whose they are */
}

static int hold_add_counter(void *userdata, const CounterSet *set) {
        char who[256];

        (void) snprintf(who, sizeof(who), "uid %u counts %s through this service",
                        (unsigned) set->uid, set->group->events[0].pmu->name);
        return hold_add_obstacle(userdata, set->peer ? set->peer->pid : 0, who);
}

static void hold_add_event(void *userdata, const Peer *peer, const Pmu *pmu) {
        char who[256];

        (void) snprintf(who, sizeof(who), "uid %u is opening an event of %s through this service",
                        (unsigned) peer->uid, pmu->name);
        (void) hold_add_obstacle(userdata, peer->pid, who);
}

typedef struct Standing {
        Hold *hold;
        bool holders;
} Standing;

static void hold_add_standing_set(void *userdata, const CounterSet *set) {
        const Standing *standing = userdata;
        bool is = !set->yielder &&
                  hold_is_holders(standing->hold, set->uid, set->peer ? set->peer->pid : 0,
                                  counter_set_order(set));

        if (is == standing->holders)
                (void) hold_add_counter(standing->hold, set);
}

static void hold_add_standing(void *userdata, Hold *h, bool holders, const Pmu *pmu, unsigned cpu,
                              Shape missing) {
        Manager *m = userdata;
        Standing standing = { h, holders };

        (void) counters_end_rest(&m->counters);
        counters_standing(&m->counters, pmu, cpu, missing, hold_add_standing_set, &standing);
}

static void hold_add_foreign(void *userdata, Hold *h) {
        Manager *m = userdata;
        const Scope *scope = &h->request.what.scope;

        (void) counters_end_rest(&m->counters);
        (void) counters_foreign(&m->counters, h->object.uid, scope, hold_add_counter, h);
        open_calls_foreign(&m->counters, h->object.uid, scope, hold_add_counter, h);
        attach_calls_foreign(&m->counters, h->object.uid, scope, hold_add_counter, h);
        event_calls_foreign(&m->events, h->object.uid, scope, hold_add_event, h);
        event_streams_foreign(&m->events, h->object.uid, scope, hold_add_event, h);
}

static void hold_census(void *userdata, const Pmu *pmu, unsigned cpu, HoldCount f,
                        void *f_userdata) {
        Manager *m = userdata;

        counters_census(&m->counters, pmu, cpu, f, f_userdata);
}

/* ---- start ---- */

static void manager_open_files(Context *context) {
        const char *directory = getenv("RUNTIME_DIRECTORY");
        int r = serial_open(&context->serial, directory);

        if (r < 0)
                log_plain(LOG_WARNING,
                          "No usable runtime directory ($RUNTIME_DIRECTORY): %s. Object "
                          "numbers start from the clock.",
                          strerror(-r));
        r = totals_open(&context->totals, directory);
        if (r < 0)
                log_plain(LOG_WARNING,
                          "No usable runtime directory ($RUNTIME_DIRECTORY): %s. Totals start from "
                          "0.",
                          strerror(-r));
}

static bool manager_reclaim(void *userdata, uid_t uid, QuotaGood good) {
        Manager *m = userdata;

        return good == QUOTA_DESCRIPTORS && counters_close_of(&m->counters, uid);
}

void manager_init(Manager *m, Reader *reader) {
        Context *context = &m->context;

        context->reader = reader;
        context->objects = &m->objects;
        quota_init(&context->quota);
        context->quota.reclaim = manager_reclaim;
        context->quota.userdata = m;
        ledger_init(&context->ledger);
        yielders_init(&context->yielders, &context->ledger, yielder_acknowledged, m);
        context->yielders.counted = yielders_counted;
        context->yielders.busy = yielders_busy;
        context->yielders.slice_usec = SLICE_USEC;
        manager_open_files(context);
        m->events = (Events){ .context = context, .holds = &m->holds };
        issued_events_init(&m->events.issued);
        m->brokers = (Brokers){ .context = context, .events = &m->events };
        m->monitors = (Monitors){ .context = context, .holds = &m->holds };
        m->configured.counters = &m->counters;
}

static void manager_yield_slice(void *userdata) {
        Manager *m = userdata;

        yielders_go_on(&m->context.yielders);
}

int manager_start(Manager *m) {
        static const HoldsHooks hooks = {
                .requested = hold_requested,
                .changed = holds_changed,
                .granted = holds_granted,
                .add_foreign = hold_add_foreign,
                .add_standing = hold_add_standing,
                .census = hold_census,
        };
        Context *context = &m->context;
        int r;

        turn_init(&m->yielding, &context->turns, manager_yield_slice, m);
        counters_end_init(&m->counters, &context->turns);
        counters_unpin_init(&m->counters, &context->turns);
        r = store_new(context->event, &context->store);
        if (r >= 0)
                r = host_state_new(&context->host);
        if (r >= 0)
                r = pmu_table_load(&context->pmus, "/sys");
        if (r >= 0)
                r = capacities_new(context, &context->capacities);
        if (r >= 0)
                r = probing_new(context, &m->probing);
        if (r >= 0)
                r = holds_init(&m->holds, context, &hooks, m);
        if (r >= 0)
                r = counters_init(&m->counters, context, &m->holds);
        if (r >= 0)
                r = counters_gate_init(&m->counters);
        if (r >= 0)
                r = samplers_init(&m->samplers, context, &m->counters);
        if (r >= 0)
                r = bridges_new(context, &m->holds, &m->bridges);
        return r;
}

/* Holds come first: they determine who has to have yielded. */
int manager_restore(Manager *m) {
        Context *context = &m->context;
        int r;

        r = host_state_bus(context);
        if (r >= 0)
                r = holds_restore(&m->holds);
        if (r >= 0)
                r = counters_restore(&m->counters);
        if (r >= 0)
                r = samplers_restore(&m->samplers);
        if (r >= 0)
                r = monitors_restore(&m->monitors);
        if (r >= 0)
                r = issued_events_restore(&m->events.issued, context->store);
        if (r >= 0)
                r = brokers_restore(&m->brokers);
        if (r >= 0)
                r = bridges_restore(m->bridges);
        if (r < 0)
                return r;
        totals_settle(&context->totals);
        r = counters_go_on(&m->counters);
        if (r < 0)
                return r;
        store_commit(context->store);
        counters_reopen(&m->counters);
        return 0;
}

/* ---- while it runs ---- */

void manager_forget_peer(void *userdata, Peer *peer) {
        Manager *m = userdata;

        auth_forget_peer(m->context.auth, peer);
        yielders_gather(&m->context.yielders);
        samplers_forget_peer(&m->samplers, peer);
        counters_forget_peer(&m->counters, peer);
        monitors_forget_peer(&m->monitors, peer);
        (void) yielders_settle(&m->context.yielders);
}

bool manager_is_idle(const void *userdata) {
        const Manager *m = userdata;

        return m->holds.objects.n == 0 && m->monitors.objects.n == 0 &&
               LIST_EMPTY(&m->counters.sets) && LIST_EMPTY(&m->events.streams) &&
               m->brokers.n == 0 && samplers_are_idle(&m->samplers);
}

/* ---- end ---- */

void manager_leave(Manager *m) {
        while (counters_tell(&m->counters.objects))
                ;
        bus_end(m->context.bus);
}

void manager_end(Manager *m) {
        requests_end(m->context.requests);
        m->probing = probing_free(m->probing);
        brokers_done(&m->brokers);
        samplers_done(&m->samplers);
        holds_done(&m->holds);
        monitors_done(&m->monitors);
        m->bridges = bridges_free(m->bridges, m->ends);
        configured_done(&m->configured);
        (void) counters_end_rest(&m->counters);
        counters_gate_done(&m->counters);
        counters_done(&m->counters);
        counters_end_done(&m->counters);
        counters_unpin_done(&m->counters);
        event_streams_done(&m->events);
        issued_events_done(&m->events.issued);
}

void manager_done(Manager *m) {
        Context *context = &m->context;

        redaction_free(context->redaction);
        reader_free(context->reader);
        capacities_free(context->capacities);
        sd_bus_close_unref(context->bus);
        turn_done(&m->yielding);
        turns_done(&context->turns);
        sd_event_unref(context->event);
        yielders_done(&context->yielders);
        ledger_done(&context->ledger);
        pmu_table_done(&context->pmus);
        quota_done(&context->quota);
        host_state_free(context->host);
        store_free(context->store);
        serial_close(&context->serial);
        totals_close(&context->totals);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "service/hold/hold.h"
#include "service/monitor/monitor.h"
#include "service/util/log.h"

/* Of the client that registered it. */
typedef struct Registrant {
        char *name;
        uint32_t pid;
} Registrant;

static void registrant_done(Registrant *who) {
        free(who->name);
}

static const PackField monitor_fields[] = {
        PACK_FIELD(PACK_STRING, "name", Monitor, name),
        PACK_FIELD(PACK_U32, "uid", Monitor, uid),
        PACK_FIELD(PACK_U32, "priority", Monitor, yielder.plan.priority),
        PACK_FIELD(PACK_U64, "seq", Monitor, yielder.plan.seq),
        PACK_FIELD(PACK_U64, "asked_for", Monitor, asked_for),
};

static const PackField registrant_fields[] = {
        PACK_FIELD(PACK_STRING, "peer", Registrant, name),
        PACK_FIELD(PACK_U32, "pid", Registrant, pid),
};

void monitor_save(Monitor *monitor, YielderState state) {
        const Registrant who = { monitor->peer->name, (uint32_t) monitor->peer->pid };
        Pack *p;

        if (!monitor->item.store)
                return;
        if (monitor->item.lost)
                store_keep(&monitor->item, &monitor->lease, 1, STORE_SOON);
        p = store_pack(monitor->service->store);
        pack_struct(p, monitor_fields, ELEMENTSOF(monitor_fields), monitor);
        pack_struct(p, registrant_fields, ELEMENTSOF(registrant_fields), &who);
        pack_u64(p, "state", state);
        scope_request_pack(p, &monitor->what, &monitor->service->pmus);
        store_save(&monitor->item, p);
}

static void monitor_keep(Monitor *monitor, YielderState state) {
        store_enter(monitor->service->store, &monitor->item, STORE_MONITOR, monitor->id);
        store_keep(&monitor->item, &monitor->lease, 1, STORE_SOON);
        monitor_save(monitor, state);
}

void monitor_enter_store(Monitor *monitor) {
        monitor_keep(monitor, YIELDER_COUNTING);
}

/* It had not answered when the earlier run ended: what it said since then went to nobody. */
static int monitor_ask_again(sd_event_source *source, void *userdata) {
        Monitor *monitor = userdata;
        Service *s = monitor->service;
        uint64_t deadline = now_usec(CLOCK_MONOTONIC) + HOLD_YIELD_USEC;
        const Hold *h = hold_find(s, monitor->asked_for);

        monitor->again = sd_event_source_disable_unref(monitor->again);
        if (monitor->yielder.state != YIELDER_ASKED)
                return 0;
        if (h && h->state == HOLD_YIELDING)
                deadline = h->yield_until_usec;
        monitor_ask(monitor,
                    h && h->ledger.state == LEDGER_ACTIVE ? monitor->asked_for : holds_current(s),
                    deadline);
        return 0;
}

static int monitor_unpack(Monitor *monitor, const Unpack *state) {
        _cleanup_(registrant_done) Registrant who = {};
        Service *s = monitor->service;
        int r;

        r = unpack_struct(state, monitor_fields, ELEMENTSOF(monitor_fields), monitor);
        if (r >= 0)
                r = unpack_struct(state, registrant_fields, ELEMENTSOF(registrant_fields), &who);
        if (r >= 0)
                r = scope_request_unpack(state, &s->pmus, &monitor->what);
        if (r < 0)
                return r;
        if (!monitor->name)
                return -EBADMSG;
        monitor->yielder.plan.scope = &monitor->what.scope;
        monitor->yielder.plan.use.takes.general = 1;
        r = host_state_peer(s, who.name, monitor->uid, (pid_t) who.pid, &monitor->peer);
        return r < 0 ? r : monitor->peer ? 0 : -ESTALE;
}

static int monitor_restore(Service *s, StoreRecord *record) {
        _cleanup_(monitor_freep) Monitor *monitor = monitor_allocate(s, 0, NULL);
        uint64_t state = unpack_u64(&record->state, "state", YIELDER_COUNTING);
        int r;

        if (!monitor)
                return -ENOMEM;
        if (state > YIELDER_YIELDED || record->n_fds != 1 || monitor_find(s, record->id))
                return -EBADMSG;
        r = monitor_unpack(monitor, &record->state);
        if (r >= 0)
                r = monitor_watch_lease(monitor, record->fds[0]);
        if (r < 0)
                return r;
        record->fds[0] = -1; /* the monitor has it now */
        r = quota_charge_anyway(&s->quota, monitor->uid, QUOTA_MONITORS, 1, &monitor->charge);
        if (r >= 0 && state == YIELDER_ASKED)
                r = sd_event_add_defer(s->event, &monitor->again, monitor_ask_again, monitor);
        if (r >= 0)
                r = monitor_enter(monitor, record->id);
        if (r < 0)
                return r;
        monitor->yielder.state = (YielderState) state;
        monitor_keep(TAKE_PTR(monitor), (YielderState) state);
        return 0;
}

int monitors_restore(Service *s) {
        StoreRecord *record;
        size_t place = 0;

        while ((record = store_next(s->store, STORE_MONITOR, &place))) {
                int r = monitor_restore(s, record);

                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        log_plain(r == -ESTALE ? LOG_DEBUG : LOG_ERR,
                                  "Monitor %" PRIu64 " is lost in the restart: %s", record->id,
                                  r == -ESTALE ? "its client is not on this bus" : strerror(-r));
        }
        return 0;
}

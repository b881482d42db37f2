/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor-store.h"

#include "service/monitor/monitor-record.h"

void monitor_save(Monitor *monitor, YielderState state) {
        const Registrant who = { monitor->peer->name, (uint32_t) monitor->peer->pid };
        Pack *p;

        if (!monitor->item.store)
                return;
        if (monitor->item.lost)
                store_keep(&monitor->item, &monitor->lease, 1, STORE_SOON);
        p = store_pack(monitor->context->store);
        pack_struct(p, monitor_fields, ELEMENTSOF(monitor_fields), monitor);
        pack_struct(p, registrant_fields, ELEMENTSOF(registrant_fields), &who);
        pack_u64(p, "state", state);
        scope_request_pack(p, &monitor->what, &monitor->context->pmus);
        store_save(&monitor->item, p);
}

void monitor_keep(Monitor *monitor, YielderState state) {
        store_enter(monitor->context->store, &monitor->item, STORE_MONITOR, monitor->object.id);
        store_keep(&monitor->item, &monitor->lease, 1, STORE_SOON);
        monitor_save(monitor, state);
}

void monitor_enter_store(Monitor *monitor) {
        monitor_keep(monitor, YIELDER_COUNTING);
}

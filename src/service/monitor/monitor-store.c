/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor-store.h"

#include "service/bus/host-state.h"

static const PackField monitor_fields[] = {
        PACK_FIELD(PACK_STRING, "name", Monitor, name),
        PACK_FIELD(PACK_U32, "uid", Monitor, object.uid),
        PACK_FIELD(PACK_U32, "priority", Monitor, yielder.plan.priority),
        PACK_FIELD(PACK_U64, "seq", Monitor, yielder.plan.seq),
        PACK_FIELD(PACK_U64, "asked_for", Monitor, asked_for),
};

void monitor_save(Monitor *monitor, YielderState state) {
        Pack *p;

        if (!monitor->item.store)
                return;
        if (monitor->item.lost)
                store_keep(&monitor->item, &monitor->lease, 1, STORE_SOON);
        p = store_pack(monitor->context->store);
        pack_struct(p, monitor_fields, ELEMENTSOF(monitor_fields), monitor);
        host_state_pack_peer(p, monitor->peer);
        pack_u64(p, "state", state);
        scope_request_pack(p, &monitor->what, &monitor->context->pmus);
        store_save(&monitor->item, p);
}

static void monitor_save_again(StoreItem *item) {
        Monitor *monitor = container_of(item, Monitor, item);

        monitor_save(monitor, monitor->yielder.state);
}

void monitor_keep(Monitor *monitor, YielderState state) {
        store_enter(monitor->context->store, &monitor->item, STORE_MONITOR, monitor->object.id,
                    monitor_save_again);
        store_keep(&monitor->item, &monitor->lease, 1, STORE_SOON);
        monitor_save(monitor, state);
}

int monitor_unpack(Monitor *monitor, const Unpack *state) {
        Context *context = monitor->context;
        int r = unpack_struct(state, monitor_fields, ELEMENTSOF(monitor_fields), monitor);

        if (r >= 0)
                r = scope_request_unpack(state, &context->pmus, &monitor->what);
        if (r < 0)
                return r;
        if (!monitor->name)
                return -EBADMSG;
        monitor->yielder.plan.scope = &monitor->what.scope;
        monitor->yielder.plan.use.takes.general = 1;
        r = host_state_unpack_peer(context, state, &monitor->peer);
        return r < 0 ? r : monitor->peer ? 0 : -ESTALE;
}

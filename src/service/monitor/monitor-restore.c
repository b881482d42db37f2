/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor-restore.h"

#include "service/monitor/monitor-store.h"

/* It had not answered when the earlier run ended. An answer since then is lost. */
static int monitor_ask_again(sd_event_source *source, void *userdata) {
        Monitor *monitor = userdata;

        monitor->again = sd_event_source_disable_unref(monitor->again);
        if (monitor->yielder.state == YIELDER_ASKED)
                monitor_ask(monitor, 0, 0);
        return 0;
}

static int monitor_restore(void *userdata, StoreRecord *record) {
        Monitors *monitors = userdata;
        _cleanup_(monitor_freep) Monitor *monitor = monitor_allocate(monitors, 0, NULL);
        uint64_t state = unpack_u64(&record->state, "state", YIELDER_COUNTING);
        int r;

        if (!monitor)
                return -ENOMEM;
        if (state > YIELDER_YIELDED || record->n_fds != 1)
                return -EBADMSG;
        r = monitor_unpack(monitor, &record->state);
        if (r >= 0)
                r = monitor_watch_lease(monitor, record->fds[0]);
        if (r < 0)
                return r;
        record->fds[0] = -1; /* the monitor has it now */
        r = quota_charge_anyway(&monitors->context->quota, monitor->object.uid, QUOTA_MONITORS, 1,
                                &monitor->charge);
        if (r >= 0 && state == YIELDER_ASKED)
                r = sd_event_add_defer(monitors->context->event, &monitor->again, monitor_ask_again,
                                       monitor);
        if (r >= 0)
                r = monitor_enter(monitor, record->id);
        if (r < 0)
                return r;
        yielder_set_state(&monitor->yielder, (YielderState) state);
        monitor->told = (YielderState) state;
        monitor_keep(TAKE_PTR(monitor), (YielderState) state);
        return 0;
}

int monitors_restore(Monitors *monitors) {
        return store_restore_each(monitors->context->store, STORE_MONITOR, "Monitor",
                                  monitor_restore, monitors);
}

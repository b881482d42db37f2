/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor-bus.h"

#include "service/auth/auth.h"
#include "service/auth/redaction.h"
#include "service/util/property.h"
#include "service/util/reply.h"

/* org.perfalloc1.Monitor */

PROPERTY_GETTER(get_name) {
        const Monitor *monitor = userdata;
        bool seen = redaction_allows(monitor->context, reply, monitor->object.uid);

        return sd_bus_message_append(reply, "s", seen ? monitor->name : "");
}

PROPERTY_GETTER(get_pid) {
        return sd_bus_message_append(reply, "u",
                                     (uint32_t) ((const Monitor *) userdata)->peer->pid);
}

PROPERTY_GETTER(get_state) {
        return sd_bus_message_append(reply, "s", monitor_state(userdata));
}

/* Only the connection that registered the monitor may answer: the uid is not enough. */
static int method_yielded(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Monitor *monitor = userdata;
        Monitors *monitors = monitor->monitors;
        Refusal why = REFUSAL_NULL;
        const char *path;
        uint64_t hold;
        int r;

        r = sd_bus_message_read_basic(m, 'o', &path);
        if (r < 0)
                return r;
        if (peers_sender(monitors->context->peers, m) != monitor->peer) {
                r = refuse(&why, REFUSAL_NOT_OWNER,
                           "%s was registered by another connection, and only that one can answer "
                           "for it",
                           monitor->object.path);
                return reply_failure(r, &why, error);
        }
        if (!object_path_number(path, "hold", &hold)) {
                r = refuse(&why, REFUSAL_INVALID_ARGS, "'%.64s' is not the path of a hold", path);
                return reply_failure(r, &why, error);
        }
        monitor_note_yielded(monitor, hold);
        r = sd_bus_reply_method_return(m, NULL);
        monitor_yielded(monitor, hold);
        return r;
}

static const sd_bus_vtable monitor_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Name", "s", get_name, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Uid", "u", NULL, offsetof(Monitor, object.uid),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Pid", "u", get_pid, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Pmus", "as", NULL, offsetof(Monitor, what.pmus),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Cpus", "s", NULL, offsetof(Monitor, what.cpus),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Priority", "u", NULL, offsetof(Monitor, yielder.plan.priority),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("State", "s", get_state, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_METHOD_WITH_ARGS("Yielded", SD_BUS_ARGS("o", hold), SD_BUS_NO_RESULT, method_yielded,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL_WITH_ARGS("Yield", SD_BUS_ARGS("o", hold, "t", deadline_usec), 0),
        SD_BUS_SIGNAL_WITH_ARGS("Resume", SD_BUS_NO_ARGS, 0),
        SD_BUS_VTABLE_END,
};

static const ObjectKind monitor_kind = {
        .name = "monitor",
        .interface = PERFALLOC_MONITOR_INTERFACE,
        .vtable = monitor_vtable,
        .offset = offsetof(Monitor, object),
        .secret = true,
};

int monitor_bus_register(Monitors *monitors) {
        return objects_register(&monitors->objects, &monitor_kind, monitors->context->bus,
                                monitors->context->objects);
}

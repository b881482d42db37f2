/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "redaction.h"

#include <search.h>
#include <string.h>

#include "service/bus/object.h"
#include "service/counter/counter.h"
#include "service/hold/hold.h"
#include "service/monitor/monitor.h"

#define PROPERTIES_INTERFACE "org.freedesktop.DBus.Properties"
#define MANAGER_INTERFACE    "org.freedesktop.DBus.ObjectManager"

/* What tells about somebody's program. */
static const char *const secret_properties[] = { "Reason", "Event", "Name", "Targets", "Config" };

static bool property_is_secret(sd_bus_message *m) {
        const char *name;

        if (sd_bus_message_read(m, "ss", NULL, &name) < 0)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(secret_properties); i++)
                if (strcmp(name, secret_properties[i]) == 0)
                        return true;
        return false;
}

static bool object_is_foreign(Service *s, const char *path, uid_t uid) {
        uint64_t id;

        if (object_path_number(path, "hold", &id)) {
                const Hold *h = hold_find(s, id);
                return h && h->uid != uid;
        }
        if (object_path_number(path, "counter", &id)) {
                const Counter *c = counter_find(s, id);
                return c && c->set->uid != uid;
        }
        if (object_path_number(path, "monitor", &id)) {
                const Monitor *monitor = monitor_find(s, id);
                return monitor && monitor->uid != uid;
        }
        return false;
}

typedef struct Foreign {
        uid_t uid;
        bool any;
} Foreign;

static void hold_is_foreign(const void *node, VISIT which, void *userdata) {
        const Hold *h = *(const Hold *const *) node;
        Foreign *foreign = userdata;

        if (which == postorder || which == leaf)
                foreign->any |= h->uid != foreign->uid;
}

static void monitor_is_foreign(const void *node, VISIT which, void *userdata) {
        const Monitor *monitor = *(const Monitor *const *) node;
        Foreign *foreign = userdata;

        if (which == postorder || which == leaf)
                foreign->any |= monitor->uid != foreign->uid;
}

static bool any_is_foreign(Service *s, uid_t uid) {
        Foreign foreign = { .uid = uid };
        const CounterSet *set;

        twalk_r(s->holds, hold_is_foreign, &foreign);
        twalk_r(s->monitors, monitor_is_foreign, &foreign);
        LIST_FOREACH (set, &s->sets, sets)
                foreign.any |= set->uid != uid;
        return foreign.any;
}

/* Whether the answer to m would tell the sender what is somebody else's. */
static bool message_reads_secrets(Service *s, sd_bus_message *m, uid_t uid) {
        const char *path = sd_bus_message_get_path(m);

        if (sd_bus_message_is_method_call(m, PROPERTIES_INTERFACE, "Get"))
                return object_is_foreign(s, path, uid) && property_is_secret(m);
        if (sd_bus_message_is_method_call(m, PROPERTIES_INTERFACE, "GetAll"))
                return object_is_foreign(s, path, uid);
        return sd_bus_message_is_method_call(m, MANAGER_INTERFACE, "GetManagedObjects") &&
               any_is_foreign(s, uid);
}

static int redaction_filter(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Service *s = userdata;
        Peer *peer;
        int r;

        s->manager_message = NULL;
        if (!sd_bus_message_is_method_call(m, NULL, NULL))
                return 0;
        peer = peers_sender(s->peers, m);
        if (peer->uid == 0 || !message_reads_secrets(s, m, peer->uid))
                return 0;
        r = auth_may_manage(s->auth, peer, m);
        if (r == AUTH_PENDING || r == -ESTALE)
                return 1;
        if (r > 0)
                s->manager_message = m;
        return 0;
}

int redaction_init(Service *s) {
        return sd_bus_add_filter(s->bus, NULL, redaction_filter, s);
}

bool redaction_manages(const Service *s, const sd_bus_message *m) {
        return s->manager_message == m;
}

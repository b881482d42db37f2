/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "redaction.h"

#include <string.h>

#include "perf/process/procfs.h"
#include "service/auth/auth.h"
#include "service/bus/object.h"

#define PROPERTIES_INTERFACE "org.freedesktop.DBus.Properties"
#define MANAGER_INTERFACE    "org.freedesktop.DBus.ObjectManager"

struct Redaction {
        Context *context;
        sd_bus_slot *filter;
        const sd_bus_message *managed; /* being answered; its sender has manage */
};

/* They tell about a user's program. */
static const char *const secret_properties[] = { "Event",  "Name",  "Targets",
                                                 "Config", "Scale", "Unit" };

static bool property_is_secret(sd_bus_message *m, bool foreign) {
        const char *name;

        if (sd_bus_message_read(m, "ss", NULL, &name) < 0)
                return false;
        if (strcmp(name, "Obstacles") == 0) /* of one's own hold too */
                return procfs_hides();
        for (size_t i = 0; foreign && i < ELEMENTSOF(secret_properties); i++)
                if (strcmp(name, secret_properties[i]) == 0)
                        return true;
        return false;
}

/* Whether the reply to m would contain secret properties of another user's object. */
static bool message_reads_secrets(Context *context, sd_bus_message *m, uid_t uid) {
        const char *path = sd_bus_message_get_path(m);

        if (sd_bus_message_is_method_call(m, PROPERTIES_INTERFACE, "Get"))
                return property_is_secret(m, object_is_foreign(context->objects, path, uid));
        if (sd_bus_message_is_method_call(m, PROPERTIES_INTERFACE, "GetAll"))
                return object_is_foreign(context->objects, path, uid) || procfs_hides();
        return sd_bus_message_is_method_call(m, MANAGER_INTERFACE, "GetManagedObjects") &&
               (objects_have_foreign(context->objects, uid) || procfs_hides());
}

/* 1: the sender has manage. AUTH_PENDING and negative: as auth_may_manage(). A call that has begun
 * its work keeps the answer: others wait for it, and must not wait for polkit. */
static int message_may_manage(Context *context, Peer *peer, sd_bus_message *m) {
        Request *request = request_find(context->requests, m);
        int r;

        if (request && request->work)
                return request->manages;
        if (!message_reads_secrets(context, m, peer->uid))
                return 0;
        r = auth_may_manage(context->auth, peer, m);
        request = request_find(context->requests, m);
        if (request && r >= 0)
                request->manages = r == 1;
        return r;
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Redaction *redaction = userdata;
        Context *context = redaction->context;
        Peer *peer;
        int r;

        redaction->managed = NULL;
        if (!sd_bus_message_is_method_call(m, NULL, NULL))
                return 0;
        peer = peers_sender(context->peers, m);
        if (peer->root)
                return 0;
        r = message_may_manage(context, peer, m);
        if (r == AUTH_PENDING || r == -ESTALE)
                return 1;
        if (r > 0)
                redaction->managed = m;
        return 0;
}

bool redaction_allows(const Context *context, sd_bus_message *reply, uid_t uid) {
        bool signal = sd_bus_message_is_signal(reply, NULL, NULL) != 0;
        sd_bus_message *m = signal ? NULL : sd_bus_get_current_message(context->bus);
        const Peer *peer = m ? peers_sender(context->peers, m) : NULL;

        return peer && (peer->root || peer->uid == uid || m == context->redaction->managed);
}

int redaction_new(Context *context, Redaction **ret) {
        Redaction *redaction = calloc(1, sizeof(*redaction));
        int r;

        if (!redaction)
                return -ENOMEM;
        redaction->context = context;
        r = sd_bus_add_filter(context->bus, &redaction->filter, on_message, redaction);
        if (r < 0) {
                free(redaction);
                return r;
        }
        *ret = redaction;
        return 0;
}

Redaction *redaction_free(Redaction *r) {
        if (!r)
                return NULL;
        sd_bus_slot_unref(r->filter);
        free(r);
        return NULL;
}

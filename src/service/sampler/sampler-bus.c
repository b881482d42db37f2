/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampler-bus.h"

#include <inttypes.h>
#include <stdio.h>

#include "service/auth/auth.h"
#include "service/auth/redaction.h"
#include "service/sampler/sampler-clock.h"
#include "service/util/property.h"
#include "service/util/reply.h"

/* org.perfalloc1.Sampler */

PROPERTY_GETTER(get_counters) {
        const Sampler *a = userdata;
        int r = sd_bus_message_open_container(reply, 'a', "o");

        for (size_t i = 0; i < a->n_counters && r >= 0; i++) {
                char counter[64];

                (void) snprintf(counter, sizeof(counter), PERFALLOC_OBJECT_PATH "/counter/%" PRIu64,
                                a->counters[i]->id);
                r = sd_bus_message_append_basic(reply, 'o', counter);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

PROPERTY_GETTER(get_blocked) {
        return sd_bus_message_append(reply, "b", (int) ((Sampler *) userdata)->client->blocked);
}

PROPERTY_GETTER(get_tag) {
        const Sampler *a = userdata;
        bool told = a->tagged && redaction_allows(a->all->context, reply, a->object.uid);

        /* it may be an address of the client's */
        return sd_bus_message_append(reply, "t",
                                     told ? perfalloc_sample_tag(a->send_log.record) : 0);
}

static int method_refresh(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Sampler *a = userdata;
        Peer *peer = peers_sender(a->all->context->peers, m);
        Refusal why = REFUSAL_NULL;
        int r = auth_check_owner(a->all->context->auth, peer, m, a->object.uid, a->object.path,
                                 &why);

        if (r == 0 && !a->mapped)
                r = refuse(&why, REFUSAL_NOT_SUPPORTED,
                           "'%s' writes to a stream, at its ticks only; option 'map' of "
                           "CreateSampler makes one that can be refreshed",
                           a->object.path);
        if (r != 0)
                return reply_failure(r, &why, error);
        sampler_refresh(a);
        return sd_bus_reply_method_return(m, NULL);
}

static int method_close(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Sampler *a = userdata;
        Samplers *all = a->all;
        Peer *peer = peers_sender(all->context->peers, m);
        Refusal why = REFUSAL_NULL;
        int r = auth_check_owner(all->context->auth, peer, m, a->object.uid, a->object.path, &why);

        if (r != 0)
                return reply_failure(r, &why, error);
        sampler_free(a);
        return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable sampler_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("IntervalUSec", "t", NULL, offsetof(Sampler, tick.interval_usec),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("StartUSec", "t", NULL, offsetof(Sampler, tick.start_usec),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Counters", "ao", get_counters, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Tag", "t", get_tag, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Ticks", "t", NULL, offsetof(Sampler, streamed.told), 0),
        SD_BUS_PROPERTY("Missed", "t", NULL, offsetof(Sampler, streamed.missed), 0),
        SD_BUS_PROPERTY("Blocked", "b", get_blocked, 0, 0),
        SD_BUS_METHOD_WITH_ARGS("Refresh", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_refresh,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Close", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_close,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL_WITH_ARGS(
                "Sample",
                SD_BUS_ARGS("t", tick, "t", boottime_nsec, "t", missed, "a(tttts)", readings), 0),
        SD_BUS_VTABLE_END,
};

static const ObjectKind sampler_kind = {
        .name = "sampler",
        .interface = PERFALLOC_SAMPLER_INTERFACE,
        .vtable = sampler_vtable,
        .offset = offsetof(Sampler, object),
};

int sampler_bus_register(Samplers *all) {
        return objects_register(&all->objects, &sampler_kind, all->context->bus,
                                all->context->objects);
}

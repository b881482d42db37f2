/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager-bus.h"

#include "perf/event/attr.h"
#include "perf/event/event-parse.h"
#include "service/broker/broker-call.h"
#include "service/counter/open-call.h"
#include "service/counter/persistent.h"
#include "service/counter/read-call.h"
#include "service/event/events-call.h"
#include "service/hold/hold-call.h"
#include "service/pmu/users-call.h"
#include "service/sampler/sampler-call.h"
#include "service/util/options.h"
#include "service/util/property.h"
#include "service/util/reply.h"

/* org.perfalloc1.Manager */

PROPERTY_GETTER(get_version) {
        return sd_bus_message_append(reply, "s", PERFALLOC_VERSION);
}

PROPERTY_GETTER(get_yielding) {
        const Manager *manager = userdata;

        return sd_bus_message_append(reply, "b", !TAILQ_EMPTY(&manager->holds.granted));
}

PROPERTY_GETTER(get_features) {
        const Manager *manager = userdata;
        int r = sd_bus_message_open_container(reply, 'a', "s");

        if (r >= 0)
                r = sd_bus_message_append(reply, "s", "broker");
        if (r >= 0)
                r = bridges_append_features(manager->bridges, reply);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

PROPERTY_GETTER(get_attr_size) {
        return sd_bus_message_append(reply, "u", attr_kernel_size());
}

PROPERTY_GETTER(get_totals) {
        Manager *manager = userdata;
        int r = sd_bus_message_open_container(reply, 'a', "{st}");

        for (Total total = 0; total < _TOTAL_MAX && r >= 0; total++)
                r = sd_bus_message_append(reply, "{st}", total_name(total),
                                          totals_value(&manager->context.totals, total));
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_event(void *userdata, const char *name, const char *pmu,
                        const char *description) {
        return MIN(sd_bus_message_append(userdata, "(sss)", name, pmu, description), 0);
}

static int method_list_events(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const Context *context = userdata;
        const char *pattern;
        int r;

        r = sd_bus_message_read_basic(m, 's', &pattern);
        if (r >= 0)
                r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(sss)");
        if (r >= 0)
                r = event_list(&context->pmus, pattern, append_event, reply);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? reply_failure(r, NULL, error) : sd_bus_send(NULL, reply, NULL);
}

static int method_encode_event(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(event_done) Event event = EVENT_NULL;
        const Context *context = userdata;
        Refusal why = REFUSAL_NULL;
        const char *string;
        int r;

        r = sd_bus_message_read_basic(m, 's', &string);
        if (r >= 0)
                r = event_parse(&context->pmus, string, &event, &why);
        if (r != 0)
                return reply_failure(r, &why, error);
        return sd_bus_reply_method_return(m, "uttt", event.attr.type, event.attr.config,
                                          event.attr.config1, event.attr.config2);
}

/* A method of one of the parts: its arguments, its results, its handler. */
#define METHOD(name, args, results, handler, noun)                                                 \
        SD_BUS_METHOD_WITH_ARGS_OFFSET(name, SD_BUS_ARGS args, SD_BUS_RESULT results, handler,     \
                                       offsetof(Manager, noun), SD_BUS_VTABLE_UNPRIVILEGED)
#define NONE (NULL)

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Yielding", "b", get_yielding, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Features", "as", get_features, 0, 0),
        SD_BUS_PROPERTY("AttrSize", "u", get_attr_size, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Totals", "a{st}", get_totals, 0, 0),
        METHOD("Hold", ("s", reason, "a{sv}", options), ("o", hold, "h", lease), hold_call_handle,
               holds),
        METHOD("HoldUnattended", ("s", reason, "t", lifetime_usec, "a{sv}", options), ("o", hold),
               hold_call_handle_unattended, holds),
        METHOD("OpenCounters", ("as", events, "a{sv}", options), ("ao", counters), open_call_handle,
               counters),
        METHOD("ReadCounters", ("ao", counters), ("a(tttts)", readings), read_call_handle,
               counters),
        METHOD("OpenEvent", ("ay", attr, "i", pid, "i", cpu, "t", flags, "a{sv}", options),
               ("h", event), event_call_handle, events),
        METHOD("OpenEvents", ("ay", attr, "t", flags, "a{sv}", options), ("u", events, "h", stream),
               events_call_handle, events),
        METHOD("OpenPersistent", ("s", id), ("o", counter), persistent_open_handle, counters),
        METHOD("ListPersistent", NONE, ("a(sos)", counters), persistent_list_handle, counters),
        METHOD("CreateSampler", ("ao", counters, "t", interval_usec, "a{sv}", options),
               ("o", sampler, "h", stream), sampler_call_create, samplers),
        METHOD("BlockSamplers", NONE, NONE, sampler_call_block, samplers),
        METHOD("UnblockSamplers", NONE, NONE, sampler_call_unblock, samplers),
        METHOD("HasSamplers", NONE, ("b", has), sampler_call_has, samplers),
        METHOD("RegisterMonitor", ("s", name, "a{sv}", options), ("o", monitor, "h", lease),
               monitor_handle_register, monitors),
        METHOD("Broker", ("h", listener, "a{sv}", options), NONE, broker_call_handle, brokers),
        METHOD("ListEvents", ("s", pattern), ("a(sss)", events), method_list_events, context),
        METHOD("EncodeEvent", ("s", event), ("u", type, "t", config, "t", config1, "t", config2),
               method_encode_event, context),
        METHOD("ListUsers", NONE, ("a(uussu)", users), users_call_handle, context),
        SD_BUS_SIGNAL_WITH_ARGS("HoldGranted",
                                SD_BUS_ARGS("o", hold, "b", confirmed, "t", latency_usec), 0),
        SD_BUS_SIGNAL_WITH_ARGS("HoldEnded", SD_BUS_ARGS("o", hold, "s", result), 0),
        SD_BUS_VTABLE_END,
};

int manager_bus_register(Manager *manager) {
        sd_bus *bus = manager->context.bus;
        int r = sd_bus_add_object_vtable(bus, NULL, PERFALLOC_OBJECT_PATH,
                                         PERFALLOC_MANAGER_INTERFACE, manager_vtable, manager);

        return r < 0 ? r : sd_bus_add_object_manager(bus, NULL, PERFALLOC_OBJECT_PATH);
}

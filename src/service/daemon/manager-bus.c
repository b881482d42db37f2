/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager-bus.h"

#include "perf/event/attr.h"
#include "perf/event/event-parse.h"
#include "service/bus/object.h"
#include "service/counter/counter.h"
#include "service/counter/open-call.h"
#include "service/counter/persistent.h"
#include "service/event/event-call.h"
#include "service/hold/hold-signals.h"
#include "service/monitor/bridges.h"
#include "service/monitor/monitor.h"
#include "service/pmu/capacity.h"
#include "service/pmu/users-call.h"
#include "service/sampler/sampler-call.h"
#include "service/util/options.h"
#include "service/util/reply.h"

/* org.perfalloc1.Manager */

static int get_version(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", PERFALLOC_VERSION);
}

static int get_yielding(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Service *s = userdata;

        return sd_bus_message_append(reply, "b", !TAILQ_EMPTY(&s->granted));
}

static int get_features(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        int r = sd_bus_message_open_container(reply, 'a', "s");

        if (r >= 0)
                r = bridges_append_features(userdata, reply);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_attr_size(sd_bus *bus, const char *path, const char *interface, const char *property,
                         sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "u", attr_kernel_size());
}

/* What a hold needs to be allowed. */
static int hold_authorize(Service *s, Peer *peer, sd_bus_message *m, HoldRequest *q, Refusal *why) {
        unsigned action = q->unattended  ? ACTION_HOLD_UNATTENDED
                          : q->exclusive ? ACTION_HOLD_EXCLUSIVE
                                         : ACTION_HOLD;

        return auth_check(s->auth, peer, m, action, q->reason, why);
}

/* Without manage the configured maxima hold. Polkit is asked for it only where more was asked for
 * in so many words: a lease that somebody forgets ends after HoldMaxSec in any case. */
static int hold_limit(const Service *s, Peer *peer, sd_bus_message *m, HoldRequest *q) {
        bool asks_for_more = q->wait_usec > s->config.wait_max_usec ||
                             q->yield_usec > s->config.wait_max_usec ||
                             (q->unattended && q->lifetime_usec > s->config.hold_max_usec);

        if (peer->uid == 0)
                return 0;
        if (asks_for_more) {
                int r = auth_may_manage(s->auth, peer, m);

                if (r != 0)
                        return MIN(r, 0);
        }
        q->lifetime_usec = MIN(q->lifetime_usec, s->config.hold_max_usec);
        q->wait_usec = MIN(q->wait_usec, s->config.wait_max_usec);
        q->yield_usec = MIN(q->yield_usec, s->config.wait_max_usec);
        return 0;
}

static int hold_reply(Hold *h, sd_bus_message *m, int lease, sd_bus_error *error) {
        int r;

        hold_signal_added(h);
        if (lease >= 0)
                r = sd_bus_reply_method_return(m, "oh", h->path, lease);
        else
                r = sd_bus_reply_method_return(m, "o", h->path);
        if (r < 0) {
                hold_end(h, HOLD_RELEASED);
                return reply_failure(r, NULL, error);
        }
        hold_begin(h);
        return 1;
}

static int handle_hold(sd_bus_message *m, Service *s, bool unattended, sd_bus_error *error) {
        _cleanup_(hold_request_done) HoldRequest request = HOLD_REQUEST_NULL;
        _cleanup_close_ int lease = -1;
        Peer *peer = peers_sender(s->peers, m);
        Refusal why = REFUSAL_NULL;
        Hold *h;
        int r;

        r = capacities_need(s);
        if (r == 0)
                r = hold_request_read(&s->pmus, m, unattended, &request, &why);
        if (r == 0)
                r = quota_check(&s->quota, peer->uid, QUOTA_HOLDS, 1, &why);
        if (r == 0)
                r = hold_authorize(s, peer, m, &request, &why);
        if (r == 0)
                r = hold_limit(s, peer, m, &request);
        request.age_usec = auth_age_usec(s->auth, m);
        if (r == 0) {
                bridges_forget_lock(s, peer->pid);
                r = hold_new(s, peer, &request, &h, unattended ? NULL : &lease, &why);
        }
        return r == 0 ? hold_reply(h, m, lease, error) : reply_failure(r, &why, error);
}

static int method_hold(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return handle_hold(m, userdata, false, error);
}

static int method_hold_unattended(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return handle_hold(m, userdata, true, error);
}

static int append_reading(sd_bus_message *reply, Counter *c) {
        Reading reading;
        Quality quality;
        int r;

        counter_read(c, &reading, &quality);
        /* part by part: with thousands of them sd-bus' walk over a format is most of it all */
        r = sd_bus_message_open_container(reply, 'r', "ttts");
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 't', &reading.value);
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 't', &reading.enabled);
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 't', &reading.running);
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 's', quality_name(quality));
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

#define READ_COUNTERS_MAX                                                                          \
        4096u /* in one call: the loop is not held up for longer than their reads take */

static int read_counters(Service *s, sd_bus_message *m, sd_bus_message *reply, Refusal *why) {
        Peer *peer = peers_sender(s->peers, m);
        const char *path;
        unsigned n = 0;
        int r;

        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "o");
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(ttts)");
        while (r >= 0 && (r = sd_bus_message_read_basic(m, 'o', &path)) > 0) {
                Counter *c = NULL;

                if (n++ >= READ_COUNTERS_MAX)
                        return refuse(why, REFUSAL_LIMITS_EXCEEDED,
                                      "one call reads at most %u counters", READ_COUNTERS_MAX);
                r = counter_find_readable(s, peer, m, path, &c, why);
                if (r != 0)
                        return r;
                r = append_reading(reply, c);
        }
        return r < 0 ? r : MIN(sd_bus_message_close_container(reply), 0);
}

static int method_read_counters(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Refusal why = REFUSAL_NULL;
        int r = sd_bus_message_new_method_return(m, &reply);

        if (r >= 0)
                r = read_counters(userdata, m, reply, &why);
        return r == 0 ? sd_bus_send(NULL, reply, NULL) : reply_failure(r, &why, error);
}

static int append_event(void *userdata, const char *name, const char *pmu,
                        const char *description) {
        return MIN(sd_bus_message_append(userdata, "(sss)", name, pmu, description), 0);
}

static int method_list_events(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const Service *s = userdata;
        const char *pattern;
        int r;

        r = sd_bus_message_read_basic(m, 's', &pattern);
        if (r >= 0)
                r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(sss)");
        if (r >= 0)
                r = event_list(&s->pmus, pattern, append_event, reply);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? reply_failure(r, NULL, error) : sd_bus_send(NULL, reply, NULL);
}

static int method_encode_event(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(event_done) Event event = EVENT_NULL;
        const Service *s = userdata;
        Refusal why = REFUSAL_NULL;
        const char *string;
        int r;

        r = sd_bus_message_read_basic(m, 's', &string);
        if (r >= 0)
                r = event_parse(&s->pmus, string, &event, &why);
        if (r != 0)
                return reply_failure(r, &why, error);
        return sd_bus_reply_method_return(m, "uttt", event.attr.type, event.attr.config,
                                          event.attr.config1, event.attr.config2);
}

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Yielding", "b", get_yielding, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Features", "as", get_features, 0, 0),
        SD_BUS_PROPERTY("AttrSize", "u", get_attr_size, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_METHOD_WITH_ARGS("Hold", SD_BUS_ARGS("s", reason, "a{sv}", options),
                                SD_BUS_RESULT("o", hold, "h", lease), method_hold,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS(
                "HoldUnattended", SD_BUS_ARGS("s", reason, "t", lifetime_usec, "a{sv}", options),
                SD_BUS_RESULT("o", hold), method_hold_unattended, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("OpenCounters", SD_BUS_ARGS("as", events, "a{sv}", options),
                                SD_BUS_RESULT("ao", counters), open_call_handle,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ReadCounters", SD_BUS_ARGS("ao", counters),
                                SD_BUS_RESULT("a(ttts)", readings), method_read_counters,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS(
                "OpenEvent",
                SD_BUS_ARGS("ay", attr, "i", pid, "i", cpu, "t", flags, "a{sv}", options),
                SD_BUS_RESULT("h", event), event_call_handle, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("OpenPersistent", SD_BUS_ARGS("s", id), SD_BUS_RESULT("o", counter),
                                persistent_open_handle, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListPersistent", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(sos)", counters),
                                persistent_list_handle, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("CreateSampler",
                                SD_BUS_ARGS("ao", counters, "t", interval_usec, "a{sv}", options),
                                SD_BUS_RESULT("o", sampler, "h", stream), sampler_call_create,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("BlockSamplers", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT,
                                sampler_call_block, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("UnblockSamplers", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT,
                                sampler_call_unblock, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("HasSamplers", SD_BUS_NO_ARGS, SD_BUS_RESULT("b", has),
                                sampler_call_has, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("RegisterMonitor", SD_BUS_ARGS("s", name, "a{sv}", options),
                                SD_BUS_RESULT("o", monitor, "h", lease), monitor_handle_register,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListEvents", SD_BUS_ARGS("s", pattern),
                                SD_BUS_RESULT("a(sss)", events), method_list_events,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("EncodeEvent", SD_BUS_ARGS("s", event),
                                SD_BUS_RESULT("u", type, "t", config, "t", config1, "t", config2),
                                method_encode_event, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListUsers", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(uussu)", users),
                                users_call_handle, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL_WITH_ARGS("HoldGranted",
                                SD_BUS_ARGS("o", hold, "b", confirmed, "t", latency_usec), 0),
        SD_BUS_SIGNAL_WITH_ARGS("HoldEnded", SD_BUS_ARGS("o", hold, "s", result), 0),
        SD_BUS_VTABLE_END,
};

int manager_bus_register(Service *s) {
        int r = sd_bus_add_object_vtable(s->bus, NULL, PERFALLOC_OBJECT_PATH,
                                         PERFALLOC_MANAGER_INTERFACE, manager_vtable, s);

        return r < 0 ? r : sd_bus_add_object_manager(s->bus, NULL, PERFALLOC_OBJECT_PATH);
}

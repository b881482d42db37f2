/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-bus.h"

#include "perf/group/group-read.h"
#include "perf/group/group-start.h"
#include "perf/process/process.h"
#include "service/auth/auth.h"
#include "service/auth/redaction.h"
#include "service/bus/delivery.h"
#include "service/counter/attach-call.h"
#include "service/counter/counter-rows.h"
#include "service/counter/counter-signals.h"
#include "service/counter/counter-store.h"
#include "service/counter/counter-user.h"
#include "service/counter/detach-call.h"
#include "service/counter/open-request.h"
#include "service/counter/persistent.h"
#include "service/util/property.h"
#include "service/util/reply.h"

/* org.perfalloc1.Counter */

#define FDS_MAX 16u /* that the system bus lets a message carry */

static Event *counter_event(const Counter *c) {
        return &c->set->group->events[c->event];
}

static bool counter_is_seen(const Counter *c, sd_bus_message *reply) {
        return redaction_allows(c->set->context, reply, c->set->uid);
}

PROPERTY_GETTER(get_event) {
        const Counter *c = userdata;

        return sd_bus_message_append(reply, "s",
                                     counter_is_seen(c, reply) ? counter_event(c)->name : "");
}

PROPERTY_GETTER(get_type) {
        return sd_bus_message_append(reply, "u", counter_event(userdata)->attr.type);
}

PROPERTY_GETTER(get_config) {
        const Counter *c = userdata;
        uint64_t config = counter_is_seen(c, reply) ? counter_event(c)->attr.config : 0;

        return sd_bus_message_append(reply, "t", config);
}

PROPERTY_GETTER(get_scope) {
        const Counter *c = userdata;

        return sd_bus_message_append(reply, "s", group_scope_name(c->set->group->scope));
}

PROPERTY_GETTER(get_targets) {
        const Counter *c = userdata;
        const Group *g = c->set->group;
        int r = sd_bus_message_open_container(reply, 'a', "u");

        for (size_t i = 0; r >= 0 && counter_is_seen(c, reply) && i < g->n_targets; i++)
                /* the pid of an ended target may be another process's */
                if (process_exists(g->targets[i].process->fd))
                        r = sd_bus_message_append(reply, "u", (uint32_t) g->targets[i].pid);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

PROPERTY_GETTER(get_cpus) {
        const Counter *c = userdata;

        return sd_bus_message_append(reply, "s", c->set->cpus);
}

PROPERTY_GETTER(get_role) {
        const Counter *c = userdata;

        return sd_bus_message_append(reply, "s", c->set->yielder ? "monitor" : "foreground");
}

PROPERTY_GETTER(get_name) {
        const Counter *c = userdata;
        const char *name = *c->set->name ? c->set->name : counter_event(c)->label ?: "";

        return sd_bus_message_append(reply, "s", counter_is_seen(c, reply) ? name : "");
}

PROPERTY_GETTER(get_state) {
        return sd_bus_message_append(reply, "s", counter_answer_state(userdata));
}

PROPERTY_GETTER(get_persistent) {
        const Counter *c = userdata;

        return sd_bus_message_append(reply, "b", c->set->persistent);
}

PROPERTY_GETTER(get_id) {
        char id[PERSISTENT_ID_SIZE];

        return sd_bus_message_append(reply, "s", persistent_id(userdata, id));
}

PROPERTY_GETTER(get_quality) {
        Counter *c = userdata;
        Reading reading;

        counter_read(c, counters_now(c->set->counters), &reading);
        return sd_bus_message_append(reply, "s", quality_name(reading.quality));
}

PROPERTY_GETTER(get_scale) {
        const Counter *c = userdata;

        return sd_bus_message_append(reply, "d",
                                     counter_is_seen(c, reply) ? counter_event(c)->scale : 1.);
}

PROPERTY_GETTER(get_unit) {
        const Counter *c = userdata;

        return sd_bus_message_append(reply, "s",
                                     counter_is_seen(c, reply) ? counter_event(c)->unit : "");
}

/* The common beginning of all methods. 0: go on; 1 or negative: return it. */
static int counter_enter(Counter *c, sd_bus_message *m, sd_bus_error *error) {
        Counters *counters = c->set->counters;
        Refusal why = REFUSAL_NULL;
        int r = auth_check_owner(counters->context->auth, peers_sender(counters->context->peers, m),
                                 m, c->set->uid, c->object.path, &why);

        return r == 0 ? 0 : reply_failure(r, &why, error);
}

/* The same for methods that reading users may call. */
static int counter_enter_reading(Counter *c, sd_bus_message *m, sd_bus_error *error) {
        Refusal why = REFUSAL_NULL;
        int r = counter_check_reading(c, peers_sender(c->set->context->peers, m), m, &why);

        return r == 0 ? 0 : reply_failure(r, &why, error);
}

static int method_start(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counter *c = userdata;
        int r = counter_enter(c, m, error);

        if (r != 0)
                return r;
        group_start(c->set->group);
        counter_set_save(c->set);
        counter_set_changed(c->set);
        return sd_bus_reply_method_return(m, NULL);
}

static int method_stop(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counter *c = userdata;
        int r = counter_enter(c, m, error);

        if (r != 0)
                return r;
        group_stop(c->set->group);
        counter_set_save(c->set);
        counter_set_changed(c->set);
        return sd_bus_reply_method_return(m, NULL);
}

static int method_reset(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counter *c = userdata;
        int r = counter_enter(c, m, error);

        if (r != 0)
                return r;
        group_reset(c->set->group, c->event);
        counter_set_save(c->set);
        counter_set_changed(c->set); /* it may be idle now */
        return sd_bus_reply_method_return(m, NULL);
}

static int method_read(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counter *c = userdata;
        Reading reading;
        int r = counter_enter_reading(c, m, error);

        if (r != 0)
                return r;
        counter_read(c, counters_now(c->set->counters), &reading);
        return sd_bus_reply_method_return(m, "tttts", reading.value, reading.enabled,
                                          reading.running, reading.estimate,
                                          quality_name(reading.quality));
}

static int reply_each(sd_bus_message *m, Counter *c, sd_bus_error *error,
                      int (*append)(sd_bus_message *reply, const Counter *c)) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = counter_enter_reading(c, m, error);

        if (r != 0)
                return r;
        r = sd_bus_message_new_method_return(m, &reply);
        counter_set_refresh(c->set, counters_now(c->set->counters));
        if (r >= 0)
                r = append(reply, c);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int method_read_parts(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return reply_each(m, userdata, error, counter_append_parts);
}

static int method_read_each(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return reply_each(m, userdata, error, counter_append_rows);
}

static int append_descriptors(sd_bus_message *reply, const int *fds, size_t n) {
        int r = sd_bus_message_open_container(reply, 'a', "h");

        for (size_t i = 0; i < n && r >= 0; i++)
                r = sd_bus_message_append_basic(reply, 'h', &fds[i]);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int counter_descriptors(const Counter *c, int fds[static FDS_MAX], size_t *ret_n,
                               Refusal *why) {
        const CounterSet *set = c->set;
        size_t n;

        if (set->yielder)
                return refuse(why, REFUSAL_NOT_PERMITTED,
                              "%s is a monitor: monitors do not return their descriptors",
                              c->object.path);
        n = group_descriptors(set->group, c->event, fds, FDS_MAX);
        if (n > FDS_MAX)
                return refuse(
                        why, REFUSAL_LIMITS_EXCEEDED,
                        "%s has %zu descriptors, and a message carries %u: open it as several "
                        "counters, with fewer CPUs (option 'cpus') or threads each",
                        c->object.path, n, FDS_MAX);
        *ret_n = n;
        return 0;
}

/* Whether the peer has proved that it may trace all its processes. */
static bool counter_is_proven(const Counter *c, const Peer *peer) {
        const Group *g = c->set->group;

        if (peer != c->set->peer)
                return false;
        for (size_t i = 0; i < g->n_targets; i++)
                if (!g->targets[i].guarded || !g->targets[i].by_opener)
                        return false;
        return true;
}

/* As if the caller opened the event now: a descriptor is more than values. Another connection has
 * proved nothing of the processes, and may live in a sandbox of the same user. */
static int counter_authorize_descriptors(const Counter *c, sd_bus_message *m, Refusal *why) {
        Context *context = c->set->context;
        Peer *peer = peers_sender(context->peers, m);
        unsigned actions = events_actions(counter_event(c), 1, c->set->group->scope,
                                          !counter_is_proven(c, peer));
        Asked asked;

        if (actions & ACTION_COUNT_OWN)
                actions = (actions & ~(unsigned) ACTION_COUNT_OWN) | ACTION_SAMPLE_OWN;
        counter_set_ask(c->set, &asked);
        return auth_check(context->auth, peer, m, actions, &asked, why);
}

static int method_get_fds(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Counter *c = userdata;
        Context *context = c->set->context;
        Refusal why = REFUSAL_NULL;
        int fds[FDS_MAX];
        size_t n = 0;
        int r = counter_enter(c, m, error);

        if (r != 0)
                return r;
        r = counter_authorize_descriptors(c, m, &why);
        if (r == 0)
                r = counter_descriptors(c, fds, &n, &why);
        if (r == 0)
                r = delivery_admit(context, peers_sender(context->peers, m), m, (unsigned) n, &why);
        if (r != 0)
                return reply_failure(r, &why, error);
        r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = append_descriptors(reply, fds, n);
        if (r < 0)
                return reply_failure(r, NULL, error);
        if (n > 0) { /* nobody has anything of a counter without processes */
                c->set->handed_out = true;
                counter_set_save(c->set);
        }
        return sd_bus_send(NULL, reply, NULL);
}

static int method_close(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counter *c = userdata;
        Counters *counters = c->set->counters;
        int r = counter_enter(c, m, error);

        if (r != 0)
                return r;
        if (c->set->configured) {
                Refusal why;

                r = refuse(&why, REFUSAL_NOT_PERMITTED,
                           "%s is a configured monitor: take %s.conf out of monitors.d and reload "
                           "perfallocd.service",
                           c->object.path, c->set->name);
                return reply_failure(r, &why, error);
        }
        counter_close(c);
        /* a client that hears that it is closed finds its counter free */
        store_settle(counters->context->store);
        return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable counter_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Event", "s", get_event, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Type", "u", get_type, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Config", "t", get_config, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Scope", "s", get_scope, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Targets", "au", get_targets, 0, 0),
        SD_BUS_PROPERTY("Cpus", "s", get_cpus, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Role", "s", get_role, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Name", "s", get_name, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Uid", "u", NULL, offsetof(Counter, object.uid),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("State", "s", get_state, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Persistent", "b", get_persistent, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Id", "s", get_id, 0, 0),
        SD_BUS_PROPERTY("Quality", "s", get_quality, 0, 0),
        SD_BUS_PROPERTY("Scale", "d", get_scale, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Unit", "s", get_unit, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_METHOD_WITH_ARGS("Start", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_start,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Stop", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_stop,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Reset", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_reset,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Read", SD_BUS_NO_ARGS,
                                SD_BUS_RESULT("t", value, "t", enabled_nsec, "t", running_nsec, "t",
                                              estimate, "s", quality),
                                method_read, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ReadEach", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(iuttts)", rows),
                                method_read_each, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ReadParts", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(iuustttts)", parts),
                                method_read_parts, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("AttachProcess", SD_BUS_ARGS("u", pid, "a{sv}", options),
                                SD_BUS_NO_RESULT, attach_call_handle, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("DetachProcess", SD_BUS_ARGS("u", pid), SD_BUS_NO_RESULT,
                                detach_call_handle, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Persist", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", id), persist_handle,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Adopt", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, adopt_handle,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetFds", SD_BUS_NO_ARGS, SD_BUS_RESULT("ah", fds), method_get_fds,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Close", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_close,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static const ObjectKind counter_kind = {
        .name = "counter",
        .interface = PERFALLOC_COUNTER_INTERFACE,
        .vtable = counter_vtable,
        .offset = offsetof(Counter, object),
        .secret = true,
        .tell = counters_tell,
};

int counter_bus_register(Counters *counters) {
        return objects_register(&counters->objects, &counter_kind, counters->context->bus,
                                counters->context->objects);
}

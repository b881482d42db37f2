/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-bus.h"

#include "core/clock.h"
#include "perf/process/procfs.h"
#include "service/auth/auth.h"
#include "service/auth/redaction.h"
#include "service/hold/hold-call.h"
#include "service/hold/hold-obstacles.h"
#include "service/hold/hold-signals.h"
#include "service/hold/hold-time.h"
#include "service/hold/hold-waiter.h"
#include "service/util/property.h"
#include "service/util/reply.h"

/* org.perfalloc1.Hold */

PROPERTY_GETTER(get_reason) {
        return sd_bus_message_append(reply, "s", ((Hold *) userdata)->request.reason);
}

PROPERTY_GETTER(get_tag) {
        return sd_bus_message_append(reply, "s", ((Hold *) userdata)->request.tag ?: "");
}

PROPERTY_GETTER(get_mode) {
        const Hold *h = userdata;

        return sd_bus_message_append(reply, "s", h->request.exclusive ? "exclusive" : "shared");
}

PROPERTY_GETTER(get_unattended) {
        return sd_bus_message_append(reply, "b", (int) ((Hold *) userdata)->request.unattended);
}

PROPERTY_GETTER(get_state) {
        return sd_bus_message_append(reply, "s", hold_state_name(((Hold *) userdata)->state));
}

PROPERTY_GETTER(get_confirmed) {
        return sd_bus_message_append(reply, "b", (int) ((Hold *) userdata)->confirmed);
}

PROPERTY_GETTER(get_result) {
        return sd_bus_message_append(reply, "s", hold_result_name(((Hold *) userdata)->result));
}

PROPERTY_GETTER(get_wait_timestamp) {
        const Hold *h = userdata;
        uint64_t until = usec_add(h->requested_usec, h->request.wait_usec);

        return sd_bus_message_append(reply, "t",
                                     h->request.wait_usec == 0 || until == UINT64_MAX ? 0 : until);
}

PROPERTY_GETTER(get_queue_position) {
        return sd_bus_message_append(reply, "u", (uint32_t) hold_queue_position(userdata));
}

typedef struct Obstacles {
        sd_bus_message *reply;
        bool redacted; /* for everybody */
} Obstacles;

static int append_obstacle(void *userdata, pid_t pid, const char *who) {
        const Obstacles *o = userdata;
        bool hidden = pid > 0 && o->redacted && procfs_hides();

        return sd_bus_message_append(o->reply, "(us)", hidden ? 0 : (uint32_t) pid,
                                     hidden ? HOLD_OBSTACLE_HIDDEN : who);
}

PROPERTY_GETTER(get_obstacles) {
        const Hold *h = userdata;
        Obstacles o = { .reply = reply, .redacted = !redaction_allows(h->context, reply, 0) };
        int r = sd_bus_message_open_container(reply, 'a', "(us)");

        if (r >= 0)
                r = hold_obstacles(h, append_obstacle, &o);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_promise(sd_bus_message *reply, const Pmu *pmu, Shape promise) {
        int r = sd_bus_message_open_container(reply, 'r', "suas");

        if (r >= 0)
                r = sd_bus_message_append(reply, "su", pmu->name, (uint32_t) promise.general);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "s");
        for (unsigned i = 0; i < pmu->n_fixed && r >= 0; i++)
                if (promise.fixed & UINT32_C(1) << i)
                        r = sd_bus_message_append_basic(reply, 's', pmu->fixed[i].name);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

PROPERTY_GETTER(get_promised) {
        const Hold *h = userdata;
        const Scope *scope = &h->request.what.scope;
        int r = sd_bus_message_open_container(reply, 'a', "(suas)");

        for (size_t i = 0; h->confirmed && h->promised && i < scope->n_parts && r >= 0; i++)
                r = append_promise(reply, &h->context->pmus.pmus[scope->parts[i].pmu],
                                   h->promised[i]);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* The common beginning of all methods. 0: go on; 1 or negative: return it. */
static int hold_enter(Hold *h, sd_bus_message *m, sd_bus_error *error) {
        Holds *holds = h->holds;
        Peer *peer = peers_sender(holds->context->peers, m);
        Refusal why = REFUSAL_NULL;
        int r;

        if (peer->uid == h->maker)
                return 0;
        r = auth_check_owner(holds->context->auth, peer, m, h->object.uid, h->object.path, &why);

        return r == 0 ? 0 : reply_failure(r, &why, error);
}

static int method_wait(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Hold *h = userdata;
        Refusal why = REFUSAL_NULL;
        int r = hold_enter(h, m, error);

        if (r != 0)
                return r;
        r = hold_wait(h, peers_sender(h->context->peers, m), m, &why);
        return r == 0 ? 1 : reply_failure(r, &why, error);
}

static int hold_refuse_over(const Hold *h, Refusal *why) {
        return refuse(why, REFUSAL_ENDED, "the hold has already ended (%s)",
                      hold_result_name(h->result));
}

static int method_release(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Hold *h = userdata;
        const Peer *peer = peers_sender(h->context->peers, m);
        Refusal why = REFUSAL_NULL;
        int r = hold_enter(h, m, error);

        if (r != 0)
                return r;
        if (h->state == HOLD_ENDED)
                return reply_failure(hold_refuse_over(h, &why), &why, error);
        hold_end(h, peer->uid == h->object.uid || peer->uid == h->maker ? HOLD_RELEASED
                                                                        : HOLD_REVOKED);
        return sd_bus_reply_method_return(m, NULL);
}

static int method_extend(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Hold *h = userdata;
        Peer *peer = peers_sender(h->context->peers, m);
        Refusal why = REFUSAL_NULL;
        uint64_t lifetime_usec;
        int r = hold_enter(h, m, error);

        if (r != 0)
                return r;
        r = MIN(sd_bus_message_read(m, "t", &lifetime_usec), 0);
        if (r == 0)
                r = hold_limit_lifetime(h->holds, peer, m, &lifetime_usec);
        if (r == 0 && h->state == HOLD_ENDED)
                r = hold_refuse_over(h, &why);
        if (r != 0)
                return reply_failure(r, &why, error);
        hold_extend(h, lifetime_usec);
        return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable hold_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Uid", "u", NULL, offsetof(Hold, object.uid), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Pid", "u", NULL, offsetof(Hold, pid), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Reason", "s", get_reason, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Tag", "s", get_tag, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Pmus", "as", NULL, offsetof(Hold, request.what.pmus),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Cpus", "s", NULL, offsetof(Hold, request.what.cpus),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Counters", "u", NULL, offsetof(Hold, request.counters),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Mode", "s", get_mode, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Unattended", "b", get_unattended, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("State", "s", get_state, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Confirmed", "b", get_confirmed, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Result", "s", get_result, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("RequestTimestamp", "t", NULL, offsetof(Hold, requested_usec),
                        SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("WaitTimestamp", "t", get_wait_timestamp, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("GrantTimestamp", "t", NULL, offsetof(Hold, granted_usec),
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ExpireTimestamp", "t", NULL, offsetof(Hold, expires_usec),
                        SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("LatencyUSec", "t", NULL, offsetof(Hold, latency_usec), 0),
        SD_BUS_PROPERTY("QueuePosition", "u", get_queue_position, 0, 0),
        SD_BUS_PROPERTY("Obstacles", "a(us)", get_obstacles, 0, 0),
        SD_BUS_PROPERTY("Promised", "a(suas)", get_promised, 0, 0),
        SD_BUS_METHOD_WITH_ARGS("Wait", SD_BUS_NO_ARGS,
                                SD_BUS_RESULT("b", confirmed, "t", latency_usec), method_wait,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_release,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Extend", SD_BUS_ARGS("t", lifetime_usec), SD_BUS_NO_RESULT,
                                method_extend, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL_WITH_ARGS("Expiring", SD_BUS_ARGS("t", timestamp), 0),
        SD_BUS_VTABLE_END,
};

static const ObjectKind hold_kind = {
        .name = "hold",
        .interface = PERFALLOC_HOLD_INTERFACE,
        .vtable = hold_vtable,
        .offset = offsetof(Hold, object),
};

int hold_bus_register(Holds *holds) {
        return objects_register(&holds->objects, &hold_kind, holds->context->bus,
                                holds->context->objects);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probe-call.h"

#include "perf/probe.h"
#include "service/reply.h"

typedef struct ProbeCall ProbeCall;

struct ProbeCall {
        Service *service;
        const Pmu *pmu;
        sd_bus_message *m, *reply;
        Peer *peer;
        QuotaCharge call;
        unsigned cpu; /* to be looked at next */
        sd_event_source *source;
        LIST_ENTRY(ProbeCall) calls;
};

static ProbeCall *probe_call_free(ProbeCall *c) {
        if (!c)
                return NULL;
        sd_event_source_disable_unref(c->source);
        LIST_REMOVE(c, calls);
        quota_release(&c->call);
        peer_unref(c->peer);
        sd_bus_message_unref(c->reply);
        sd_bus_message_unref(c->m);
        free(c);
        return NULL;
}
DEFINE_CLEANUP(ProbeCall *, probe_call_free)

static int probe_call_finish(ProbeCall *c) {
        int r = sd_bus_message_close_container(c->reply);

        if (r >= 0)
                r = sd_bus_send(NULL, c->reply, NULL);
        return MIN(r, 0);
}

/* Looks at the next CPU: 1 there are more, 0 all is done. */
static int probe_call_step(ProbeCall *c) {
        int cpu = cpuset_next(&c->pmu->cpus, c->cpu);
        int n;

        if (cpu < 0)
                return probe_call_finish(c);
        c->cpu = (unsigned) cpu + 1;
        if (!cpuset_has(&c->service->pmus.online, (unsigned) cpu))
                return 1;
        store_settle(c->service->store);
        n = probe_free_now(c->pmu, (unsigned) cpu, c->pmu->counters);
        if (n == -ENODEV)
                return 1; /* it has just gone offline */
        if (n >= 0)
                n = sd_bus_message_append(c->reply, "(uu)", (uint32_t) cpu, (uint32_t) n);
        return n < 0 ? n : 1;
}

static int probe_call_run(sd_event_source *source, void *userdata) {
        ProbeCall *c = userdata;
        int r = probe_call_step(c);

        if (r > 0)
                return 0;
        if (r < 0)
                reply_failure_later(c->m, r, NULL);
        probe_call_free(c);
        return 0;
}

/* A bucket that holds some calls and fills slowly: probing takes other people's breakpoints for a
 * moment. */
static int probe_call_pace(Service *s, const Peer *peer, Refusal *why) {
        uint64_t now = now_usec(CLOCK_MONOTONIC);
        uint64_t full = PROBE_CALLS_BURST * PROBE_CALLS_PER_USEC;

        s->probe_paid_usec = MAX(s->probe_paid_usec, now > full ? now - full : 0);
        if (peer->uid != 0 && s->probe_paid_usec + PROBE_CALLS_PER_USEC > now)
                return refuse(why, REFUSAL_LIMITS_EXCEEDED,
                              "counters are being probed too often; try again in a second");
        s->probe_paid_usec = MIN(s->probe_paid_usec + PROBE_CALLS_PER_USEC, now);
        return 0;
}

static int probe_call_new(Service *s, const Pmu *pmu, Peer *peer, sd_bus_message *m, Refusal *why) {
        _cleanup_(probe_call_freep) ProbeCall *c = calloc(1, sizeof(ProbeCall));
        int r;

        if (!c)
                return -ENOMEM;
        *c = (ProbeCall){
                .service = s, .pmu = pmu, .m = sd_bus_message_ref(m), .peer = peer_ref(peer)
        };
        LIST_INSERT_HEAD(&s->probe_calls, c, calls);
        r = quota_charge(&s->quota, peer->uid, QUOTA_CALLS, 1, &c->call, why);
        if (r != 0)
                return r;
        r = sd_bus_message_new_method_return(m, &c->reply);
        if (r >= 0)
                r = sd_bus_message_open_container(c->reply, 'a', "(uu)");
        if (r >= 0)
                r = sd_event_add_defer(s->event, &c->source, probe_call_run, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->source, SD_EVENT_ON);
        if (r < 0)
                return r;
        c = NULL;
        return 0;
}

int probe_call_begin(Service *s, const Pmu *pmu, sd_bus_message *m, Refusal *why) {
        Peer *peer = peers_sender(s->peers, m);
        int r = bouncer_check(s->bouncer, peer, m, ACTION_COUNT_SYSTEM, NULL, why);

        if (r != 0)
                return r;
        if (!probe_can(pmu) || !pmu->measured)
                return refuse(why, REFUSAL_NOT_SUPPORTED,
                              "PMU %s (%s) has no counters that run out, or none that can be "
                              "measured without harm",
                              pmu->name, pmu_kind_name(pmu->kind));
        r = probe_call_pace(s, peer, why);
        return r == 0 ? probe_call_new(s, pmu, peer, m, why) : r;
}

void probe_calls_forget_peer(Service *s, Peer *peer) {
        ProbeCall *c, *next;

        for (c = LIST_FIRST(&s->probe_calls); c; c = next) {
                next = LIST_NEXT(c, calls);
                if (c->peer == peer)
                        probe_call_free(c);
        }
}

void probe_calls_done(Service *s) {
        while (!LIST_EMPTY(&s->probe_calls))
                probe_call_free(LIST_FIRST(&s->probe_calls));
}

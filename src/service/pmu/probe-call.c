/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probe-call.h"

#include "core/clock.h"
#include "perf/pmu/probe.h"
#include "service/auth/auth.h"
#include "service/store/store.h"
#include "service/util/rate-limit.h"

typedef struct ProbeCall ProbeCall;

TAILQ_HEAD(ProbeCallList, ProbeCall);

struct ProbeCall {
        Request *call;
        const Pmu *pmu;
        sd_bus_message *reply;
        struct ProbeCallList *list; /* that it is in */
        TAILQ_ENTRY(ProbeCall) entry;
};

struct Probing {
        Context *context;
        ObjectNode node;
        RateLimit users;               /* µs of their pace that users have taken, by uid */
        uint64_t paid_usec;            /* CLOCK_MONOTONIC: how far the common pace is used up */
        struct ProbeCallList waiting;  /* for the next measurement */
        struct ProbeCallList measured; /* for the measurement under way */
        const Pmu *pmu;                /* of the measurement under way; NULL: there is none */
        unsigned cpu;                  /* to be measured next */
        sd_event_source *step;         /* measures the next CPU */
        sd_event_source *clock;        /* when the next measurement may begin */
};

/* ---- calls ---- */

static void probe_call_list(ProbeCall *c, struct ProbeCallList *list) {
        if (c->list)
                TAILQ_REMOVE(c->list, c, entry);
        c->list = list;
        if (list)
                TAILQ_INSERT_TAIL(list, c, entry);
}

static void probe_call_end(void *work) {
        ProbeCall *c = work;

        probe_call_list(c, NULL);
        sd_bus_message_unref(c->reply);
        request_done(c->call);
        free(c);
}

static int probe_call_add(ProbeCall *c, unsigned cpu, unsigned n_free) {
        return sd_bus_message_append(c->reply, "(uu)", (uint32_t) cpu, (uint32_t) n_free);
}

static void probe_call_answer(ProbeCall *c) {
        int r = sd_bus_message_close_container(c->reply);

        if (r >= 0)
                r = sd_bus_send(NULL, c->reply, NULL);
        if (r < 0)
                request_fail(c->call, r, NULL);
        else
                probe_call_end(c);
}

/* ---- measurements ---- */

/* When the next measurement may begin. Root does not wait. */
static uint64_t probing_due(Probing *p, uint64_t now) {
        const uint64_t full = PROBES_BURST * PROBES_USEC;
        const ProbeCall *c;

        p->paid_usec = MAX(p->paid_usec, now > full ? now - full : 0);
        TAILQ_FOREACH (c, &p->waiting, entry)
                if (c->call->peer->root)
                        return now;
        return p->paid_usec + PROBES_USEC;
}

/* Which users' calls join the measurement that is about to begin. */
typedef struct ProbeUsers {
        size_t n;
        struct {
                uid_t uid;
                bool may;
        } users[RATE_LIMIT_KEYS];
} ProbeUsers;

static bool probing_take(Probing *p, uid_t uid, uint64_t now) {
        return uid == 0 || rate_limit_take(&p->users, uid, now, PROBES_USER_USEC,
                                           PROBES_USER_BURST * PROBES_USER_USEC);
}

/* A user pays once for all of their calls. */
static bool probing_user_may(Probing *p, ProbeUsers *j, uid_t uid, uint64_t now) {
        bool may;

        for (size_t i = 0; i < j->n; i++)
                if (j->users[i].uid == uid)
                        return j->users[i].may;
        may = probing_take(p, uid, now);
        if (j->n < RATE_LIMIT_KEYS) {
                j->users[j->n].uid = uid;
                j->users[j->n++].may = may;
        }
        return may;
}

/* All calls for the same PMU, of users who are within their pace, share one measurement. */
static void probing_gather(Probing *p, uint64_t now) {
        ProbeCall *c, *next;
        ProbeUsers j = {};

        for (c = TAILQ_FIRST(&p->waiting); c; c = next) {
                next = TAILQ_NEXT(c, entry);
                if ((p->pmu && c->pmu != p->pmu) ||
                    !probing_user_may(p, &j, c->call->peer->uid, now))
                        continue;
                p->pmu = c->pmu;
                probe_call_list(c, &p->measured);
        }
}

static void probing_begin(Probing *p) {
        uint64_t now = now_usec(CLOCK_MONOTONIC), due;

        if (p->pmu || TAILQ_EMPTY(&p->waiting))
                return;
        due = probing_due(p, now);
        if (due <= now)
                probing_gather(p, now);
        if (!p->pmu) {
                (void) sd_event_source_set_time(p->clock, MAX(due, now + PROBES_USEC / 2));
                (void) sd_event_source_set_enabled(p->clock, SD_EVENT_ONESHOT);
                return;
        }
        p->paid_usec = MIN(p->paid_usec + PROBES_USEC, now);
        p->cpu = 0;
        (void) sd_event_source_set_enabled(p->step, SD_EVENT_ON);
}

/* Measures the next CPU. 1: there are more, 0: all are done. */
static int probing_measure_cpu(Probing *p) {
        int cpu = cpuset_next(&p->pmu->cpus, p->cpu), r = 1, look;
        ProbeCall *c;
        Shape n;

        if (cpu < 0 || TAILQ_EMPTY(&p->measured))
                return 0;
        p->cpu = (unsigned) cpu + 1;
        if (!cpuset_has(&p->context->pmus.online, (unsigned) cpu))
                return 1;
        store_settle(p->context->store);
        look = probe_free_now(p->pmu, (unsigned) cpu, (Shape){ .general = p->pmu->counters }, &n);
        if (look < 0 || look == LOOK_OFFLINE) /* it may have just gone */
                return look < 0 ? look : 1;
        TAILQ_FOREACH (c, &p->measured, entry)
                if (r > 0)
                        r = MIN(probe_call_add(c, (unsigned) cpu, n.general), 1);
        return r < 0 ? r : 1;
}

static int probing_step(sd_event_source *source, void *userdata) {
        Probing *p = userdata;
        int r = probing_measure_cpu(p);
        ProbeCall *c;

        if (r > 0)
                return 0;
        while ((c = TAILQ_FIRST(&p->measured)))
                if (r < 0)
                        request_fail(c->call, r, NULL);
                else
                        probe_call_answer(c);
        p->pmu = NULL;
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        probing_begin(p);
        return 0;
}

static int probing_may_begin(sd_event_source *source, uint64_t usec, void *userdata) {
        probing_begin(userdata);
        return 0;
}

/* ---- new ones ---- */

static int probe_call_start(ProbeCall *c) {
        int r = sd_bus_message_new_method_return(c->call->m, &c->reply);

        if (r >= 0)
                r = sd_bus_message_open_container(c->reply, 'a', "(uu)");
        return MIN(r, 0);
}

static int probe_call_new(Probing *p, const Pmu *pmu, Peer *peer, sd_bus_message *m, Refusal *why) {
        ProbeCall *c = calloc(1, sizeof(ProbeCall));
        int r;

        if (!c)
                return -ENOMEM;
        c->pmu = pmu;
        r = request_begin(p->context, peer, m, c, probe_call_end, &c->call, why);
        if (r == 0)
                r = probe_call_start(c);
        if (r != 0) {
                probe_call_end(c);
                return r;
        }
        probe_call_list(c, &p->waiting);
        probing_begin(p);
        return 0;
}

int probe_call_begin(Probing *p, const Pmu *pmu, sd_bus_message *m, Refusal *why) {
        Context *context = p->context;
        Peer *peer = peers_sender(context->peers, m);
        Asked asked = ASKED_NULL;
        int r = quota_check(&context->quota, peer->uid, QUOTA_CALLS, 1, why);

        asked.scope = "cpu";
        asked_add(asked.pmus, pmu->name);
        if (r == 0)
                r = auth_check(context->auth, peer, m, ACTION_COUNT_SYSTEM, &asked, why);
        if (r != 0)
                return r;
        if (!look_can(pmu))
                return refuse(why, REFUSAL_NOT_SUPPORTED,
                              "PMU %s (%s) has no counters that run out, or none that can be "
                              "measured without harm",
                              pmu->name, pmu_kind_name(pmu->kind));
        return probe_call_new(p, pmu, peer, m, why);
}

/* ---- start and end ---- */

int probing_new(Context *context, Probing **ret) {
        Probing *p = calloc(1, sizeof(Probing));
        int r;

        if (!p)
                return -ENOMEM;
        p->context = context;
        p->users.per_sec = USEC_PER_SEC;
        TAILQ_INIT(&p->waiting);
        TAILQ_INIT(&p->measured);
        r = sd_event_add_defer(context->event, &p->step, probing_step, p);
        if (r >= 0)
                r = sd_event_source_set_enabled(p->step, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(context->event, &p->clock, CLOCK_MONOTONIC, UINT64_MAX,
                                      USEC_PER_MSEC, probing_may_begin, p);
        if (r < 0) {
                probing_free(p);
                return r;
        }
        *ret = p;
        return 0;
}

Probing *probing_free(Probing *p) {
        if (!p)
                return NULL;
        sd_event_source_disable_unref(p->step);
        sd_event_source_disable_unref(p->clock);
        free(p);
        return NULL;
}

Context *probing_context(const Probing *p) {
        return p->context;
}

ObjectNode *probing_node(Probing *p) {
        return &p->node;
}

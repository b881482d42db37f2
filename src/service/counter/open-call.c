/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "open-call.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "perf/group/group-cpu.h"
#include "perf/group/group-start.h"
#include "perf/process/procfs.h"
#include "service/auth/auth.h"
#include "service/counter/attach-sets.h"
#include "service/counter/counter-end.h"
#include "service/counter/counter-store.h"
#include "service/counter/counter.h"
#include "service/counter/open-request.h"
#include "service/hold/hold-scope.h"
#include "service/util/reply.h"

#define OPEN_AT_ONCE 32u /* sets in one message to the opener */

typedef struct OpenCall {
        Request *call;
        Counters *counters;
        OpenRequest request;

        AttachJob attach; /* the target of a process counter */
        bool opened;      /* the sets are there, with or without the target */
        AttachSets all;

        bool paused;
        size_t n_open, n_started; /* sets without target: so many are done */
} OpenCall;

static void open_call_end(void *work) {
        OpenCall *o = work;

        attach_job_done(&o->attach);
        counter_sets_end(o->counters, o->all.sets, o->all.n_sets);
        free(o->all.sets);
        open_request_done(&o->request);
        request_done(o->call);
        free(o);
}

static int open_call_check_quota(const OpenCall *o, Refusal *why) {
        Quota *quota = &o->counters->context->quota;
        uid_t uid = o->call->peer->uid;
        int r = quota_check(quota, uid, QUOTA_COUNTERS, o->request.n_events, why);

        /* what earlier clients of the user have left may not be closed yet */
        if (r <= 0 || !counters_end_rest(o->counters))
                return r;
        return quota_check(quota, uid, QUOTA_COUNTERS, o->request.n_events, why);
}

static int open_call_new(Counters *counters, Peer *peer, sd_bus_message *m, OpenCall **ret,
                         Refusal *why) {
        OpenCall *o = calloc(1, sizeof(OpenCall));
        int r;

        if (!o)
                return -ENOMEM;
        *o = (OpenCall){ .counters = counters,
                         .request = OPEN_REQUEST_NULL,
                         .attach = ATTACH_JOB_NULL };
        r = request_begin(counters->context, peer, m, o, open_call_end, &o->call, why);
        if (r == 0)
                r = open_request_read(counters->context, m, peer, &o->request, why);
        if (r == 0)
                r = open_call_check_quota(o, why);
        if (r == 0)
                *ret = o;
        else
                open_call_end(o);
        return r;
}

/* Whether the caller holds every PMU that counts it. */
static bool open_call_is_held(const OpenCall *o, const Event *e) {
        const OpenRequest *q = &o->request;

        for (size_t unit = 0; unit < event_units(e); unit++)
                if (!holds_cover(o->counters->holds, o->call->peer->uid, event_on(e, unit)->pmu,
                                 q->scope == GROUP_PROCESS ? NULL : &q->cpus))
                        return false;
        return true;
}

/* A holder's counters are pinned, so that they keep what the hold was promised. Inherited events
 * cannot be. A group that a software event leads is where the rest of it is: on the core PMU. */
static bool open_call_is_pinned(const OpenCall *o, const Group *g) {
        const OpenRequest *q = &o->request;
        PmuKind leader = g->events[0].pmu->kind;
        bool core = false;

        if (q->pinned)
                return true;
        if (q->monitor || q->descendants || (leader != PMU_CORE && leader != PMU_SOFTWARE))
                return false;
        for (size_t i = 0; i < g->n_events; i++) {
                if (g->events[i].pmu->kind != PMU_CORE)
                        continue;
                if (!open_call_is_held(o, &g->events[i]))
                        return false;
                core = true;
        }
        return core;
}

static int open_call_new_set(OpenCall *o, size_t first, size_t n, CounterSet **ret, Refusal *why) {
        const OpenRequest *q = &o->request;
        CounterSetOptions options = {
                .uid = o->call->peer->uid,
                .peer = o->call->peer,
                .name = q->name,
                .cpus = q->scope == GROUP_PROCESS ? NULL : &q->cpus,
                .monitor = q->monitor,
                .persistent = q->persistent,
                .priority = q->priority,
                .yields_to = q->yields_to,
        };
        _cleanup_(group_freep) Group *g = NULL;
        Event *events;
        int r;

        r = events_copy(&o->request.events[first], n, &events);
        if (r == 0)
                r = group_new(q->scope, events, n, &g, why);
        if (r != 0)
                return r;
        g->descendants = q->descendants;
        g->pinned = open_call_is_pinned(o, g);
        if (q->scope == GROUP_CGROUP) {
                g->cgroup = fcntl(q->cgroup, F_DUPFD_CLOEXEC, 3);
                if (g->cgroup < 0)
                        return -errno;
        }
        if (q->scope != GROUP_PROCESS) {
                r = group_add_cpus(g, &q->cpus, &o->counters->context->pmus.online);
                if (r < 0)
                        return r;
        }
        r = counter_set_new(o->counters, TAKE_PTR(g), &options, ret, why);
        if (r == 0)
                (*ret)->pins = (*ret)->group->pinned && !q->pinned;
        return r;
}

static int open_call_add_set(OpenCall *o, size_t first, size_t n, Refusal *why) {
        CounterSet **place = &o->all.sets[o->all.n_sets];
        int r = open_call_new_set(o, first, n, place, why);

        if (r > 0 && counters_end_rest(o->counters)) /* their charges are released */
                r = open_call_new_set(o, first, n, place, why);
        o->all.n_sets += r == 0;
        return r;
}

/* The sets that a slice has time for. */
static int open_call_add_sets(OpenCall *o, Refusal *why) {
        uint64_t until = now_usec(CLOCK_MONOTONIC) + SLICE_USEC;
        size_t n_events = o->request.n_events;
        size_t step = o->request.group ? n_events : 1;
        int r = 0;

        while (o->all.n_sets * step < n_events && r == 0) {
                r = open_call_add_set(o, o->all.n_sets * step, step, why);
                if (now_usec(CLOCK_MONOTONIC) >= until)
                        break;
        }
        o->opened = r == 0 && o->all.n_sets * step == n_events;
        return r;
}

/* After a failure, freeing the call undoes everything. */
static int open_call_new_sets(OpenCall *o, Refusal *why) {
        Yielders *yielders = &o->counters->context->yielders;
        int r, k;

        if (!o->all.sets)
                o->all.sets = calloc(o->request.n_events, sizeof(CounterSet *));
        if (!o->all.sets)
                return -ENOMEM;
        yielders_gather(yielders);
        r = open_call_add_sets(o, why);
        k = yielders_settle(yielders);
        return r != 0 ? r : k;
}

static int open_call_make_counters(OpenCall *o, sd_bus_message *reply) {
        int r = sd_bus_message_open_container(reply, 'a', "o");

        for (size_t i = 0; i < o->all.n_sets && r >= 0; i++)
                for (size_t event = 0; event < o->all.sets[i]->group->n_events && r >= 0; event++) {
                        Counter *c;

                        r = counter_new(o->all.sets[i], event, &c);
                        if (r >= 0)
                                r = sd_bus_message_append_basic(reply, 'o', c->object.path);
                }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* All counts. */
static int open_call_finish(OpenCall *o) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(o->call->m, &reply);

        if (r >= 0)
                r = open_call_make_counters(o, reply);
        if (r < 0)
                return r;
        counter_sets_save(o->counters, o->all.sets, o->all.n_sets);
        r = sd_bus_send(NULL, reply, NULL);
        if (r < 0)
                return r;
        o->all.n_sets = 0; /* the call no longer owns them */
        open_call_end(o);
        return 0;
}

/* All is open on the target: all counters start at once. */
static int open_call_start(OpenCall *o) {
        _cleanup_free_ Group **groups = calloc(MAX(o->all.n_sets, 1u), sizeof(Group *));

        if (!groups)
                return -ENOMEM;
        for (size_t i = 0; i < o->all.n_sets; i++)
                groups[i] = o->all.sets[i]->group;
        if (o->request.start)
                groups_start(groups, o->all.n_sets);
        return open_call_finish(o);
}

/* ---- in slices ---- */

static void open_call_pause(OpenCall *o) {
        o->paused = true;
        request_pause(o->call);
}

/* Opens the next sets, or starts the next one. */
static int open_call_step(OpenCall *o, Refusal *why) {
        CounterSet *const *sets = o->all.sets + o->n_open;
        size_t n = MIN(o->all.n_sets - o->n_open, OPEN_AT_ONCE);
        int r;

        counters_end_before(o->counters, sets, n);
        r = counter_sets_open(sets, n, why);
        if (r == 0 && n == 0)
                group_start(o->all.sets[o->n_started++]->group);
        o->n_open += n;
        return r;
}

/* Counters without a target: what opening and starting them takes grows with what counts on their
 * CPUs already, so other calls are answered in between. */
static int open_call_go_on(OpenCall *o, Refusal *why) {
        uint64_t until = now_usec(CLOCK_MONOTONIC) + SLICE_USEC;
        size_t n_to_start = o->request.start ? o->all.n_sets : 0;

        while (o->n_open < o->all.n_sets || o->n_started < n_to_start) {
                int r = open_call_step(o, why);

                if (r != 0)
                        return r;
                if (now_usec(CLOCK_MONOTONIC) < until)
                        continue;
                open_call_pause(o);
                return 0;
        }
        return open_call_finish(o);
}

/* ---- the target ---- */

/* Whether the caller may still ask for count-other. */
static bool open_call_asks_more(const OpenCall *o, int r) {
        return r == REFUSAL_NOT_PERMITTED && *o->attach.untraceable && !o->attach.allowed;
}

/* The target was inspected or opened. */
static void open_call_attached(void *userdata, int r, const Refusal *why) {
        OpenCall *o = userdata;

        if ((!o->opened && r == 0) || open_call_asks_more(o, r)) {
                request_resume(o->call);
                return;
        }
        if (r == 0)
                r = open_call_start(o);
        if (r != 0)
                request_fail(o->call, r, why);
}

static int open_call_authorized(OpenCall *o, Refusal *why) {
        Counters *counters = o->counters;
        int r;

        r = holds_admit_opening(counters->holds, o->call->peer->uid, o->request.events,
                                o->request.n_events,
                                o->request.scope == GROUP_PROCESS ? NULL : &o->request.cpus, why);
        if (r == 0 && o->request.pinned && o->request.scope != GROUP_PROCESS)
                r = holds_admit_pinned(counters->holds, o->call->peer->uid, o->request.events,
                                       o->request.n_events, &o->request.cpus, "option 'pinned'",
                                       why);
        if (r == 0 && !o->opened)
                r = open_call_new_sets(o, why);
        if (r == 0 && !o->opened) {
                open_call_pause(o);
                return 0;
        }
        if (r == 0 && !o->request.attach)
                return open_call_go_on(o, why);
        if (r == 0) {
                o->attach.allowed = *o->attach.untraceable;
                o->attach.kind = &attach_sets_kind;
                o->attach.what = &o->all;
                r = attach_job_open(&o->attach, why);
        }
        return r == 0 ? open_call_start(o) : r;
}

/* Starts a call. 0: it goes on at once; -EINPROGRESS: the reader inspects the target. Root may
 * count every process. */
static int open_call_begin(OpenCall *o, Refusal *why) {
        const OpenRequest *q = &o->request;
        AttachJob *a = &o->attach;
        int r;

        if (!q->attach)
                return 0;
        *a = (AttachJob){ .context = o->counters->context,
                          .peer = o->call->peer,
                          .done = open_call_attached,
                          .userdata = o,
                          .pidfd = -1,
                          .procfd = -1,
                          .descendants = q->descendants };
        r = attach_job_hold(a, (pid_t) q->pid, q->pidfd, q->procfd, why);
        /* the reader tells which process a proof holds */
        if (r != 0 || (o->call->peer->root && q->procfd < 0))
                return r;
        r = attach_job_inspect(a);
        return r < 0 ? r : -EINPROGRESS;
}

static int open_call_authorize(OpenCall *o, Refusal *why) {
        const char *untraceable = o->attach.untraceable;
        unsigned actions = open_request_actions(&o->request, *untraceable);
        const AttachJob *a = &o->attach;
        Refusal denied;
        Asked asked;
        int r;

        open_request_ask(&o->request, attach_job_target_uid(a), &asked);
        r = auth_check(o->call->context->auth, o->call->peer, o->call->m, actions, &asked, &denied);
        if (r > 0 && a->hidden)
                return procfs_refuse_unseen(a->pid, why);
        if (r <= 0)
                return r;
        return refuse(why, r, "%s%s%.600s", untraceable, *untraceable ? "; " : "", denied.text);
}

int open_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counters *counters = userdata;
        Peer *peer = peers_sender(counters->context->peers, m);
        OpenCall *o = request_work(counters->context, m, open_call_end);
        Refusal why = REFUSAL_NULL;
        bool goes_on = o && o->paused;
        int r = 0;

        if (!o) {
                r = open_call_new(counters, peer, m, &o, &why);
                if (r != 0)
                        return reply_failure(r, &why, error);
                r = open_call_begin(o, &why);
        }
        o->paused = false; /* what comes after its slices may have to be authorized */
        if (r == 0 && !goes_on)
                r = open_call_authorize(o, &why);
        if (r == 0)
                r = open_call_authorized(o, &why);
        if (r == 0 || r == -EINPROGRESS)
                return 1;
        open_call_end(o);
        return reply_failure(r, &why, error);
}

/* ---- for exclusive holds ---- */

typedef struct OpenSearch {
        uid_t uid;
        const Scope *scope;
        int (*f)(void *userdata, const CounterSet *set);
        void *userdata;
} OpenSearch;

/* Without a target, a set of processes counts nothing. */
static void open_call_look_foreign(void *userdata, void *work) {
        const OpenSearch *search = userdata;
        const OpenCall *o = work;

        for (size_t i = 0; i < o->all.n_sets && o->opened && o->request.attach; i++) {
                const CounterSet *set = o->all.sets[i];

                if (!set->yielder && set->uid != search->uid &&
                    scope_overlaps(&set->scope, search->scope))
                        (void) search->f(search->userdata, set);
        }
}

void open_calls_foreign(const Counters *counters, uid_t uid, const Scope *scope,
                        int (*f)(void *userdata, const CounterSet *set), void *userdata) {
        OpenSearch search = { uid, scope, f, userdata };

        requests_walk(counters->context->requests, open_call_end, open_call_look_foreign, &search);
}

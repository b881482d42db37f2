/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attach-call.h"

#include "perf/group/group-target.h"
#include "perf/process/procfs.h"
#include "service/auth/auth.h"
#include "service/counter/attach-sets.h"
#include "service/counter/counter-target.h"
#include "service/counter/counter-user.h"
#include "service/hold/hold-scope.h"
#include "service/util/options.h"
#include "service/util/reply.h"

typedef struct AttachCall {
        Request *call;
        Counter *counter; /* NULL: it is closed */
        CounterListener listener;

        AttachJob attach;
        CounterSet *set;
        AttachSets all; /* that set alone */
        bool opening;   /* the target is inspected, and the caller is authorized */
} AttachCall;

static void attach_call_end(void *work) {
        AttachCall *c = work;

        if (c->counter)
                LIST_REMOVE(&c->listener, listeners);
        attach_job_done(&c->attach);
        request_done(c->call);
        free(c);
}

/* A call on its way back to its handler is answered by sd-bus: there is no such object. */
static void attach_call_counter_closed(CounterListener *l, Counter *counter) {
        AttachCall *c = container_of(l, AttachCall, listener);
        Refusal why;

        c->counter = NULL;
        if (c->call->state == REQUEST_RESUMED)
                attach_call_end(c);
        else
                request_fail(
                        c->call,
                        refuse(&why, REFUSAL_UNKNOWN_OBJECT, "%s was closed", counter->object.path),
                        &why);
}

/* ---- preconditions ---- */

int attach_call_refuse_scope(const Counter *c, Refusal *why) {
        return refuse(why, REFUSAL_WRONG_SCOPE,
                      "%s has scope %s: only a counter of scope process has processes",
                      c->object.path, group_scope_name(c->set->group->scope));
}

static int counter_takes_targets(const Counter *c, Refusal *why) {
        const CounterSet *set = c->set;

        if (set->group->scope != GROUP_PROCESS)
                return attach_call_refuse_scope(c, why);
        if (set->handed_out)
                return refuse(why, REFUSAL_NOT_PERMITTED,
                              "%s: no process can be attached after its descriptors were handed "
                              "out (GetFds); open another counter",
                              c->object.path);
        if (set->group->wanted)
                return refuse(why, REFUSAL_COUNTER_RUNNING,
                              "%s is counting: stop it before attaching a process", c->object.path);
        return 0;
}

static int counter_takes_descendants(const Counter *c, Refusal *why) {
        const CounterSet *set = c->set;
        int r = attach_sets_check_descendants(set, why);

        if (r != 0)
                return r;
        if (set->yielder && group_closes_to_yield(set->group))
                return refuse(
                        why, REFUSAL_INVALID_ARGS,
                        "option 'descendants': %s is a monitor that yields by closing its event; "
                        "descendants cannot be found again afterwards",
                        c->object.path);
        return 0;
}

int attach_call_read_pid(uint32_t number, const Peer *peer, pid_t *ret, Refusal *why) {
        if (number <= INT32_MAX) {
                *ret = number > 0 ? (pid_t) number : peer->pid;
                return 0;
        }
        return refuse(why, REFUSAL_INVALID_PROCESS, "%u is not a valid pid", number);
}

/* ---- AttachProcess ---- */

typedef struct AttachOptions {
        int descendants, procfd, pidfd;
} AttachOptions;

enum { OPTION_DESCENDANTS, OPTION_PROCFD, OPTION_PIDFD, _OPTION_MAX };

static const OptionSpec option_specs[_OPTION_MAX] = {
        [OPTION_DESCENDANTS] = { "descendants", "b", offsetof(AttachOptions, descendants) },
        [OPTION_PROCFD] = { "procfd", "h", offsetof(AttachOptions, procfd) },
        [OPTION_PIDFD] = { "pidfd", "h", offsetof(AttachOptions, pidfd) },
};

static int attach_call_read(AttachCall *c, Refusal *why) {
        AttachOptions o = { .descendants = c->set->group->descendants, .procfd = -1, .pidfd = -1 };
        AttachJob *a = &c->attach;
        uint64_t seen;
        uint32_t number;
        pid_t pid = 0;
        int r;

        r = sd_bus_message_rewind(c->call->m, true);
        if (r >= 0)
                r = sd_bus_message_read_basic(c->call->m, 'u', &number);
        if (r < 0)
                return r;
        r = options_read(c->call->m, option_specs, _OPTION_MAX, &o, &seen, why);
        if (r == 0)
                r = counter_takes_targets(c->counter, why);
        if (r == 0 && o.descendants)
                r = counter_takes_descendants(c->counter, why);
        /* a caller in another PID namespace does not know the number */
        if (r == 0 && !(number == 0 && seen & (1u << OPTION_PROCFD | 1u << OPTION_PIDFD)))
                r = attach_call_read_pid(number, c->call->peer, &pid, why);
        if (r != 0)
                return r;
        a->descendants = o.descendants;
        return attach_job_hold(a, pid, o.pidfd, o.procfd, why);
}

/* pmc_attach(3) has one error for every conflict over the target's counters. */
static int attach_call_translate(int r, const Refusal *why, Refusal *ret) {
        if (r == REFUSAL_NO_COUNTER_LEFT)
                return refuse(ret, REFUSAL_BUSY, "%s", why->text);
        if (r > 0 && ret != why)
                *ret = *why;
        return r;
}

static bool attach_call_asks_more(const AttachCall *c, int r) {
        return r == REFUSAL_NOT_PERMITTED && *c->attach.untraceable && !c->attach.allowed;
}

static int attach_call_check_tracer(const AttachCall *c, Refusal *why) {
        const ProcessFacts *facts = &c->attach.facts;

        if (facts->tracer == 0 || reader_frees(c->call->context->reader, facts->tracer))
                return 0;
        return refuse(why, REFUSAL_BUSY, "process %d is being traced by process %d",
                      (int) facts->pid, (int) facts->tracer);
}

/* The target was inspected or opened. */
static void attach_call_attached(void *userdata, int r, const Refusal *why) {
        AttachCall *c = userdata;
        Refusal mine = REFUSAL_NULL;

        r = attach_call_translate(r, why, &mine);
        if ((!c->opening && r == 0) || attach_call_asks_more(c, r)) {
                request_pause(c->call); /* a client may attach hundreds at once */
                return;
        }
        if (r == 0)
                r = MIN(sd_bus_reply_method_return(c->call->m, NULL), 0);
        if (r != 0)
                request_fail(c->call, r, &mine);
        else
                attach_call_end(c);
}

static int attach_call_new(Counter *counter, Peer *peer, sd_bus_message *m, Refusal *why) {
        Counters *counters = counter->set->counters;
        AttachCall *c = calloc(1, sizeof(AttachCall));
        int r;

        if (!c)
                return -ENOMEM;
        *c = (AttachCall){ .counter = counter,
                           .listener.closed = attach_call_counter_closed,
                           .set = counter->set };
        counter_listen(counter, &c->listener);
        c->attach = (AttachJob){ .context = counters->context,
                                 .peer = peer,
                                 .done = attach_call_attached,
                                 .userdata = c,
                                 .pidfd = -1,
                                 .procfd = -1 };
        r = request_begin(counters->context, peer, m, c, attach_call_end, &c->call, why);
        if (r == 0)
                r = attach_call_read(c, why);
        if (r == 0)
                r = attach_job_inspect(&c->attach);
        if (r != 0)
                attach_call_end(c);
        return r;
}

/* With count-other the caller may count what they may not trace. */
static int attach_call_authorize(AttachCall *c, Refusal *why) {
        const char *untraceable = c->attach.untraceable;
        Refusal denied;
        Asked asked;
        int r;

        if (!*untraceable || c->attach.allowed)
                return 0;
        counter_set_ask(c->set, &asked);
        asked.target = attach_job_target_uid(&c->attach);
        r = auth_check(c->call->context->auth, c->call->peer, c->call->m, ACTION_COUNT_OTHER,
                       &asked, &denied);
        if (r > 0 && c->attach.hidden)
                return procfs_refuse_unseen(c->attach.pid, why);
        if (r == REFUSAL_ACCESS_DENIED || r == REFUSAL_INTERACTION_REQUIRED)
                return refuse(why, REFUSAL_NOT_PERMITTED, "%s; %.600s", untraceable, denied.text);
        if (r > 0)
                return refuse(why, r, "%s; %.600s", untraceable, denied.text);
        c->attach.allowed = r == 0;
        return r;
}

static int attach_call_go_on(AttachCall *c, Refusal *why) {
        const Group *g = c->set->group;
        Refusal words = REFUSAL_NULL;
        int r;

        r = attach_call_authorize(c, why);
        if (r == 0 && !c->opening)
                r = attach_call_check_tracer(c, why);
        /* the counter may have been started or handed out meanwhile */
        if (r == 0)
                r = counter_takes_targets(c->counter, why);
        if (r == 0)
                r = holds_admit_opening(c->set->counters->holds, c->set->uid, g->events,
                                        g->n_events, NULL, why);
        if (r != 0)
                return r;
        c->opening = true;
        c->all = (AttachSets){ &c->set, 1 };
        c->attach.kind = &attach_sets_kind;
        c->attach.what = &c->all;
        r = attach_job_open(&c->attach, &words);
        return attach_call_translate(r, &words, why);
}

int attach_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counter *counter = userdata;
        Counters *counters = counter->set->counters;
        Peer *peer = peers_sender(counters->context->peers, m);
        AttachCall *c = request_work(counters->context, m, attach_call_end);
        Refusal why = REFUSAL_NULL;
        int r;

        if (!c) {
                r = auth_check_owner(counters->context->auth, peer, m, counter->set->uid,
                                     counter->object.path, &why);
                if (r == 0)
                        r = attach_call_new(counter, peer, m, &why);
                return r == 0 ? 1 : reply_failure(r, &why, error);
        }
        r = attach_call_go_on(c, &why);
        if (r == -EINPROGRESS)
                return 1;
        attach_call_end(c);
        return r == 0 ? sd_bus_reply_method_return(m, NULL) : reply_failure(r, &why, error);
}

/* ---- for exclusive holds ---- */

typedef struct AttachSearch {
        uid_t uid;
        const Scope *scope;
        int (*f)(void *userdata, const CounterSet *set);
        void *userdata;
} AttachSearch;

static void attach_call_look_foreign(void *userdata, void *work) {
        const AttachSearch *search = userdata;
        const AttachCall *c = work;

        if (c->opening && c->set->uid != search->uid &&
            scope_overlaps(&c->set->scope, search->scope))
                (void) search->f(search->userdata, c->set);
}

void attach_calls_foreign(const Counters *counters, uid_t uid, const Scope *scope,
                          int (*f)(void *userdata, const CounterSet *set), void *userdata) {
        AttachSearch search = { uid, scope, f, userdata };

        requests_walk(counters->context->requests, attach_call_end, attach_call_look_foreign,
                      &search);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-call.h"

#include <stdio.h>
#include <sys/ioctl.h>

#include "perf/event/explain.h"
#include "perf/process/procfs.h"
#include "perf/process/thread.h"
#include "service/auth/action.h"
#include "service/auth/trace-rule.h"
#include "service/bus/delivery.h"
#include "service/event/event-auth.h"
#include "service/event/event-request.h"
#include "service/pmu/capacity.h"
#include "service/util/reply.h"

typedef struct EventCall {
        Request *call;
        Events *events;
        EventRequest request;
        QuotaCharge descriptor;

        Thread target; /* if the request has one */
        TraceClaim claim;
        uid_t target_uid;
        ReaderJob *job;
        bool inspected;        /* by the reader, before the event was opened */
        bool hidden;           /* the peer must not learn that the target exists */
        char untraceable[256]; /* why the peer needs count-other, or empty */
        int fd;                /* the event, disabled */
} EventCall;

static void event_call_end(void *work) {
        EventCall *c = work;

        c->job = reader_job_cancel(c->job);
        close_fd(c->fd);
        thread_release(&c->target);
        quota_release(&c->descriptor);
        request_done(c->call);
        free(c);
}

static int group_check(const EventCall *c, Refusal *why) {
        if (c->request.group < 0)
                return 0;
        switch (event_check_leader(c->events, c->call->peer->uid, c->request.group)) {
        case EVENT_LEADER_ISSUED:
                return 0;
        case EVENT_LEADER_STRANGE:
                return refuse(why, REFUSAL_BAD_DESCRIPTOR,
                              "option 'group': the leader is not (or no longer known as) an event "
                              "that OpenEvent gave to user %u; open the group's leader by "
                              "OpenEvent as well",
                              (unsigned) c->call->peer->uid);
        default:
                return refuse(why, REFUSAL_BAD_DESCRIPTOR,
                              "option 'group': the descriptor is not a perf event");
        }
}

/* ---- beginning ---- */

static int event_call_new(Events *events, Peer *peer, sd_bus_message *m, EventCall **ret,
                          Refusal *why) {
        EventCall *c = calloc(1, sizeof(EventCall));
        int r;

        if (!c)
                return -ENOMEM;
        *c = (EventCall){ .events = events,
                          .request = EVENT_REQUEST_NULL,
                          .target = THREAD_NULL,
                          .target_uid = peer->uid,
                          .fd = -1 };
        r = request_begin(events->context, peer, m, c, event_call_end, &c->call, why);
        if (r == 0)
                r = quota_charge(&events->context->quota, peer->uid, QUOTA_DESCRIPTORS, 1,
                                 &c->descriptor, why);
        if (r == 0)
                r = event_request_read(&events->context->pmus, m, &c->request, why);
        if (r == 0)
                r = group_check(c, why);
        if (r == 0)
                *ret = c;
        else
                event_call_end(c);
        return r;
}

/* Holds the process behind a pidfd that is from that option, or the thread of it that pid names. */
static int event_call_hold_process(EventCall *c, int pidfd, const char *option, Refusal *why) {
        const EventRequest *q = &c->request;
        pid_t process;
        int r;

        r = process_from_pidfd(pidfd, &process, why);
        if (r != 0)
                return r;
        r = thread_hold(q->pid > 0 ? q->pid : process, &c->target, why);
        if (r != 0)
                return r;
        /* it exists, so its pid was not reused until now */
        if (!process_exists(pidfd))
                return refuse(why, REFUSAL_NO_SUCH_PROCESS, "option '%s': the process has ended",
                              option);
        if (c->target.pid != process)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "pid: %d is not a thread of process %d, which option '%s' names; "
                              "give 0 for "
                              "its first one",
                              (int) q->pid, (int) process, option);
        return 0;
}

static int event_call_hold_caller(EventCall *c, Refusal *why) {
        Thread *t = &c->target;
        int r = peer_process(c->call->peer, &t->pid, &t->pidfd, why);

        t->tid = t->pid;
        return r;
}

static int refuse_ended(const EventCall *c, Refusal *why) {
        return refuse(why, REFUSAL_NO_SUCH_PROCESS, "'%s': process or thread %d has ended",
                      c->request.name, (int) c->target.tid);
}

/* Without a proof. */
static int event_call_hold(EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        int r;

        if (q->pidfd >= 0)
                r = event_call_hold_process(c, q->pidfd, "pidfd", why);
        else if (q->pid > 0)
                r = thread_hold(q->pid, &c->target, why);
        else
                r = event_call_hold_caller(c, why);
        if (r == 0)
                c->claim = trace_rule_claim(c->call->peer, c->target.pid);
        return r;
}

/* ---- whether the caller may trace it ---- */

static int event_call_check_target(const EventCall *c, Refusal *why) {
        int r = thread_check(&c->target);

        return r == -ESRCH ? refuse_ended(c, why) : r;
}

static int event_call_finish(EventCall *c, Refusal *why);

static int event_call_check_facts(const EventCall *c, const ProcessFacts *facts, Refusal *why) {
        int r = facts->zombie ? refuse_ended(c, why) : event_call_check_target(c, why);

        return r > 0 && trace_rule_hides(c->call->peer, facts)
                       ? procfs_refuse_unseen(c->target.tid, why)
                       : r;
}

/* The message goes back to its handler, which asks for count-other. */
static void event_call_set_untraceable(EventCall *c, const ProcessFacts *facts, const char *words) {
        c->hidden = trace_rule_hides(c->call->peer, facts);
        c->target_uid = facts->uid[0];
        (void) snprintf(c->untraceable, sizeof(c->untraceable),
                        "the caller may not trace process %d: %s", (int) c->target.pid, words);
        request_resume(c->call);
}

/* The reader has inspected the target before the event is opened. */
static void event_call_inspected(void *userdata, int r, const ProcessFacts *facts, bool neighbour,
                                 const Refusal *why) {
        EventCall *c = userdata;
        const char *words;
        Refusal ended;

        c->job = NULL;
        c->inspected = true;
        if (r == 0) {
                r = event_call_check_facts(c, facts, &ended);
                why = &ended;
        }
        if (r == 0) {
                words = trace_rule_denies(c->call->peer, c->claim, neighbour, facts);
                if (words)
                        event_call_set_untraceable(c, facts, words);
                else
                        request_resume(c->call);
        }
        if (r != 0)
                request_fail(c->call, r, why);
}

/* The event is open, disabled. words: why the caller may not trace the target, which the first
 * inspection, if there was one, did not find. */
static int event_call_give_up(EventCall *c, const ProcessFacts *facts, const char *words,
                              Refusal *why) {
        c->fd = close_fd(c->fd);
        if (c->inspected)
                return refuse(why, REFUSAL_NOT_PERMITTED,
                              "process %d changed while it was being opened: %s",
                              (int) c->target.pid, words);
        c->inspected = true;
        event_call_set_untraceable(c, facts, words);
        return 0;
}

/* The reader has inspected the target of the event, which is open and disabled. The target may have
 * executed another program since the first inspection. */
static void event_call_verified(void *userdata, int r, const ProcessFacts *facts, bool neighbour,
                                const Refusal *why) {
        EventCall *c = userdata;
        const char *words;
        Refusal mine;

        c->job = NULL;
        if (r == 0) {
                r = event_call_check_facts(c, facts, &mine);
                why = &mine;
        }
        if (r == 0) {
                words = trace_rule_denies(c->call->peer, c->claim, neighbour, facts);
                r = words ? event_call_give_up(c, facts, words, &mine)
                          : event_call_finish(c, &mine);
        }
        if (r != 0)
                request_fail(c->call, r, why);
}

static int event_call_inspect(EventCall *c, ReaderInspected done) {
        int asker = c->claim == TRACE_PROVEN ? c->call->peer->pidfd : -1;
        int r = reader_inspect(c->call->context->reader, c->target.pidfd, asker, done, c, &c->job);

        return r < 0 ? r : -EINPROGRESS;
}

/* One inspection, after the event is opened, is enough if the caller is the target or has a proof,
 * the inspection could only add count-other, and the disabled event tells nobody anything. A
 * sibling in a group may be enabled and read through its leader. */
static bool event_call_may_defer(const EventCall *c) {
        const EventRequest *q = &c->request;

        return (c->claim == TRACE_ITSELF || c->claim == TRACE_PROVEN) &&
               event_request_actions(q, false) == ACTION_SAMPLE_OWN && !event_request_joins(q) &&
               !q->needs.by[ATTR_NEED_CONTENT];
}

/* 0: go on; -EINPROGRESS: the reader inspects the target. Root may count every process. */
static int event_call_inspect_first(EventCall *c) {
        if (c->call->peer->root || !event_request_has_target(&c->request) ||
            event_call_may_defer(c))
                return 0;
        return event_call_inspect(c, event_call_inspected);
}

/* ---- the proof ---- */

static int event_call_take_proof(EventCall *c, bool proven, int pidfd, Refusal *why) {
        const EventRequest *q = &c->request;
        int r = q->pidfd >= 0 ? event_call_hold_process(c, q->pidfd, "pidfd", why)
                              : event_call_hold_process(c, pidfd, "procfd", why);

        if (r != 0)
                return r;
        c->claim = trace_rule_claim_proof(c->call->peer, c->target.pid, proven);
        return event_call_inspect_first(c);
}

static void event_call_proven(void *userdata, int r, int pidfd, const Refusal *why) {
        EventCall *c = userdata;
        Refusal mine;

        c->job = NULL;
        /* where it proves nothing, count-other may still be granted for a target that is known */
        if (r == 0 || (r == REFUSAL_BAD_DESCRIPTOR && c->request.pidfd >= 0)) {
                r = event_call_take_proof(c, r == 0, pidfd, &mine);
                why = &mine;
        }
        if (r == 0)
                request_resume(c->call);
        else if (r != -EINPROGRESS)
                request_fail(c->call, r, why);
}

/* 0 when the target may be asked for at once, -EINPROGRESS when the reader is at work. */
static int event_call_begin(EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        int r = 0;

        if (!event_request_has_target(q))
                return 0;
        if (q->pid > 0)
                r = trace_rule_check_number(c->call->peer, q->pid, why);
        if (r == 0 && q->procfd >= 0) {
                r = reader_prove(c->call->context->reader, q->procfd, q->pidfd, event_call_proven,
                                 c, &c->job);
                return r < 0 ? r : -EINPROGRESS;
        }
        if (r == 0)
                r = event_call_hold(c, why);
        return r == 0 ? event_call_inspect_first(c) : r;
}

/* ---- authorization ---- */

static void event_call_describe(const EventCall *c, EventOpening *ret) {
        *ret = (EventOpening){ .events = c->events,
                               .uid = c->call->peer->uid,
                               .root = c->call->peer->root,
                               .request = &c->request,
                               .target = &c->target,
                               .untraceable = *c->untraceable };
}

static int event_call_authorize(EventCall *c, Refusal *why) {
        EventOpening o;
        int r;

        event_call_describe(c, &o);
        r = event_authorize(&o, c->call, c->target_uid, c->untraceable, why);
        return r > 0 && c->hidden ? procfs_refuse_unseen(c->target.tid, why) : r;
}

/* ---- opening ---- */

static int event_call_open_event(EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        EventOpening o;
        int fd, r;

        event_call_describe(c, &o);
        /* the hold may have ended since the call was authorized */
        r = event_check_hold(&o, why);
        if (r == 0)
                r = capacities_need(c->call->context->capacities);
        if (r != 0)
                return r;
        fd = event_open(&o);
        if (fd < 0)
                return explain_open(-fd, &q->event, event_request_pid(q, &c->target), q->cpu, why);
        c->fd = fd;
        return 0;
}

static int event_call_redirect(const EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;

        if (!event_request_redirects(q) || ioctl(c->fd, PERF_EVENT_IOC_SET_OUTPUT, q->group) == 0)
                return 0;
        return explain_open(errno, &q->event, event_request_pid(q, &c->target), q->cpu, why);
}

/* All is allowed: hands the event out. */
static int event_call_finish(EventCall *c, Refusal *why) {
        EventOpening o;
        uint64_t id;
        int r;

        event_call_describe(c, &o);
        /* an exclusive hold may have been granted since it was opened */
        r = event_admit(&o, why);
        if (r == 0)
                r = event_call_redirect(c, why);
        if (r != 0)
                return r;
        if (ioctl(c->fd, PERF_EVENT_IOC_ID, &id) < 0)
                return -errno;
        r = issued_events_add(&c->events->issued, c->call->peer->uid, id);
        if (r < 0)
                return r;
        if (c->request.start && ioctl(c->fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
                return -errno;
        r = sd_bus_reply_method_return(c->call->m, "h", c->fd);
        if (r < 0)
                return r;
        totals_add(&c->call->context->totals, TOTAL_EVENTS_OPENED, 1);
        event_call_end(c);
        return 0;
}

static int event_call_open(EventCall *c, Refusal *why) {
        EventOpening o;
        int r;

        event_call_describe(c, &o);
        r = event_admit(&o, why);
        if (r != 0)
                return r;
        r = event_call_open_event(c, why);
        if (r != 0 || !event_request_has_target(&c->request))
                return r;
        if (c->call->peer->root || *c->untraceable)
                return event_call_check_target(c, why);
        return event_call_inspect(c, event_call_verified);
}

int event_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Events *events = userdata;
        Peer *peer = peers_sender(events->context->peers, m);
        EventCall *c = request_work(events->context, m, event_call_end);
        Refusal why = REFUSAL_NULL;
        int r = 0;

        if (!c) {
                r = event_call_new(events, peer, m, &c, &why);
                if (r != 0)
                        return reply_failure(r, &why, error);
                r = event_call_begin(c, &why);
        }
        if (r == 0)
                r = event_call_authorize(c, &why);
        if (r == 0)
                r = delivery_admit(events->context, peer, m, 1, &why);
        if (r == 0)
                r = event_call_open(c, &why);
        if (r == 0)
                r = event_call_finish(c, &why);
        if (r == 0 || r == -EINPROGRESS)
                return 1;
        event_call_end(c);
        return reply_failure(r, &why, error);
}

typedef struct EventSearch {
        uid_t uid;
        const Scope *scope;
        void (*f)(void *userdata, const Peer *peer, const Pmu *pmu);
        void *userdata;
} EventSearch;

static void event_call_look_foreign(void *userdata, void *work) {
        const EventSearch *search = userdata;
        const EventCall *c = work;
        const ScopePart *part = scope_find(search->scope, c->request.event.pmu->index);

        if (c->fd >= 0 && c->call->peer->uid != search->uid && part &&
            (c->request.cpu < 0 || cpuset_has(&part->cpus, (unsigned) c->request.cpu)))
                search->f(search->userdata, c->call->peer, c->request.event.pmu);
}

void event_calls_foreign(const Events *events, uid_t uid, const Scope *scope,
                         void (*f)(void *userdata, const Peer *peer, const Pmu *pmu),
                         void *userdata) {
        EventSearch search = { uid, scope, f, userdata };

        requests_walk(events->context->requests, event_call_end, event_call_look_foreign, &search);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-call.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "perf/event/attr.h"
#include "perf/event/explain.h"
#include "perf/process/thread.h"
#include "service/auth/auth.h"
#include "service/auth/trace-rule.h"
#include "service/event/event-request.h"
#include "service/hold/hold-scope.h"
#include "service/pmu/capacity.h"
#include "service/util/reply.h"

typedef struct EventCall {
        Request *call;
        Events *events;
        EventRequest request;
        QuotaCharge descriptor;

        Thread target; /* of a request that has one */
        TraceClaim claim;
        ReaderJob *job;
        bool inspected;        /* by the reader, before it was opened */
        char untraceable[256]; /* why the peer may not count it without count-other; empty: it may
                                */
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

/* ---- the leader of a group ---- */

static bool is_perf_event(int fd) {
        char path[sizeof("/proc/self/fd/-2147483648")],
                target[sizeof("anon_inode:[perf_event]") + 1];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
                return false;
        target[n] = '\0';
        return strcmp(target, "anon_inode:[perf_event]") == 0;
}

/* Only what is a perf event for sure is asked for its number: to another file that ioctl may mean
 * anything. */
static int group_check(const EventCall *c, Refusal *why) {
        int fd = c->request.group;
        uint64_t id;

        if (fd < 0)
                return 0;
        if (!is_perf_event(fd) || ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
                return refuse(why, REFUSAL_BAD_DESCRIPTOR,
                              "option 'group': the descriptor is no perf event");
        if (!issued_events_has(&c->events->issued, c->call->peer->uid, id))
                return refuse(
                        why, REFUSAL_BAD_DESCRIPTOR,
                        "option 'group': the leader is not (or no longer known as) an event that "
                        "OpenEvent gave to user %u; open the group's leader by OpenEvent as well",
                        (unsigned) c->call->peer->uid);
        return 0;
}

/* ---- beginning ---- */

static int event_call_new(Events *events, Peer *peer, sd_bus_message *m, EventCall **ret,
                          Refusal *why) {
        EventCall *c = calloc(1, sizeof(EventCall));
        int r;

        if (!c)
                return -ENOMEM;
        *c = (EventCall){
                .events = events, .request = EVENT_REQUEST_NULL, .target = THREAD_NULL, .fd = -1
        };
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

/* The process behind a pidfd that goes by that option, or the thread of it that pid names. */
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
        /* its number was its own until now */
        if (!process_exists(pidfd))
                return refuse(why, REFUSAL_NO_SUCH_PROCESS, "option '%s': the process has ended",
                              option);
        if (c->target.pid != process)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "pid: %d is no thread of process %d, which option '%s' names; "
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
        return facts->zombie ? refuse_ended(c, why) : event_call_check_target(c, why);
}

/* It is asked for as what it is, and the message comes again. */
static void event_call_set_untraceable(EventCall *c, const char *words) {
        (void) snprintf(c->untraceable, sizeof(c->untraceable),
                        "the caller may not trace process %d: %s", (int) c->target.pid, words);
        request_resume(c->call);
}

/* The reader has looked before anything was opened. */
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
                        event_call_set_untraceable(c, words);
                else
                        request_resume(c->call);
        }
        if (r != 0)
                request_fail(c->call, r, why);
}

/* Whether a glance could not have told that the rule denies it. */
static bool event_call_was_unseen(const EventCall *c, const ProcessFacts *facts) {
        ProcessFacts seen = *facts;

        seen.same_user_ns = true;
        return !c->inspected && !trace_rule_denies(c->call->peer, c->claim, true, &seen);
}

/* The reader has looked at the target of an event that is open, disabled. Since the first look it
 * may have become somebody else's program. */
static void event_call_verified(void *userdata, int r, const ProcessFacts *facts, bool neighbour,
                                const Refusal *why) {
        EventCall *c = userdata;
        const char *words = NULL;
        Refusal changed;

        c->job = NULL;
        if (r == 0) {
                r = event_call_check_facts(c, facts, &changed);
                why = &changed;
        }
        if (r == 0)
                words = trace_rule_denies(c->call->peer, c->claim, neighbour, facts);
        if (words)
                c->fd = close_fd(c->fd);
        if (words && event_call_was_unseen(c, facts))
                event_call_set_untraceable(c, words);
        else if (words)
                r = refuse(&changed, REFUSAL_NOT_PERMITTED,
                           "process %d changed while it was being opened: %s", (int) c->target.pid,
                           words);
        else if (r == 0) {
                r = event_call_finish(c, &changed);
                why = &changed;
        }
        if (r != 0)
                request_fail(c->call, r, why);
}

static int event_call_inspect(EventCall *c, ReaderInspected done) {
        int asker = c->claim == TRACE_PROVEN ? c->call->peer->pidfd : -1;
        int r = reader_inspect(c->call->context->reader, c->target.pidfd, asker, done, c, &c->job);

        return r < 0 ? r : -EINPROGRESS;
}

/* Where a glance is enough before the event is opened: the answer of the full look would change
 * nothing but whether count-other is asked for, and what is opened tells nobody anything while it
 * is disabled, which a sibling may be enabled and read by its leader's owner. */
static bool event_call_may_glance(const EventCall *c) {
        const EventRequest *q = &c->request;

        return event_request_actions(q, false) == ACTION_COUNT_OWN && !event_request_joins(q) &&
               !q->needs.by[ATTR_NEED_CONTENT];
}

/* Whether the target has to be asked for as somebody else's: 0 when it may go on at once,
 * -EINPROGRESS when the reader is looking. Where a glance finds nothing against it the reader looks
 * after the event was opened, and not before as well. Root may count everybody. */
static int event_call_look(EventCall *c, Refusal *why) {
        ProcessFacts facts;
        int r;

        if (c->call->peer->uid == 0 || !event_request_has_target(&c->request))
                return 0;
        if (!event_call_may_glance(c))
                return event_call_inspect(c, event_call_inspected);
        r = process_glance(c->target.pidfd, c->target.pid, &facts, why);
        if (r != 0)
                return r;
        return trace_rule_denies(c->call->peer, c->claim, true, &facts)
                       ? event_call_inspect(c, event_call_inspected)
                       : 0;
}

/* ---- the proof ---- */

static int event_call_take_proof(EventCall *c, bool proven, int pidfd, Refusal *why) {
        const EventRequest *q = &c->request;
        int r = q->pidfd >= 0 ? event_call_hold_process(c, q->pidfd, "pidfd", why)
                              : event_call_hold_process(c, pidfd, "procfd", why);

        if (r != 0)
                return r;
        c->claim = trace_rule_claim_proof(c->call->peer, c->target.pid, proven);
        return event_call_look(c, why);
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
        return r == 0 ? event_call_look(c, why) : r;
}

/* ---- authorization ---- */

static int event_call_check_hold(const EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        const char *field = q->needs.by[ATTR_NEED_HOLD];

        if (!field || holds_cover(c->events->holds, c->call->peer->uid, q->event.pmu, q->cpu))
                return 0;
        return refuse(why, REFUSAL_NOT_PERMITTED,
                      "attr: %s takes counters away from everybody else, and so needs a hold on "
                      "PMU %s; take "
                      "one first (Hold, perfalloc)",
                      field, q->event.pmu->name);
}

static int event_call_authorize(EventCall *c, Refusal *why) {
        unsigned actions = event_request_actions(&c->request, *c->untraceable);
        Refusal denied;
        int r = event_call_check_hold(c, why);

        if (r != 0)
                return r;
        r = auth_check(c->call->context->auth, c->call->peer, c->call->m, actions, NULL, &denied);
        if (r <= 0)
                return r;
        (void) refuse(why, r, "%s%s%.600s", c->untraceable, *c->untraceable ? "; " : "",
                      denied.text);
        event_request_blame(&c->request, actions, why);
        return r;
}

/* ---- opening ---- */

/* What the caller was not allowed is left out; what he holds he keeps. */
static void event_call_adapt(const EventCall *c, Attr *attr) {
        const EventRequest *q = &c->request;
        const unsigned greater = ACTION_COUNT_KERNEL | ACTION_COUNT_OTHER | ACTION_COUNT_SYSTEM;
        uint64_t flags = attr_number(&q->attr, ATTR_FLAGS);

        if (c->call->peer->uid != 0 && !(event_request_actions(q, *c->untraceable) & greater))
                attr_confine(attr);
        if (q->event.pmu->kind == PMU_CORE && !event_request_joins(q) && !(flags & attr_flag(1)) &&
            holds_cover(c->events->holds, c->call->peer->uid, q->event.pmu, q->cpu))
                attr_set_number(attr, ATTR_FLAGS, attr_number(attr, ATTR_FLAGS) | attr_flag(2));
}

static int event_call_admit(const EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;

        if (q->cpu >= 0 && cpuset_add(&cpus, (unsigned) q->cpu) < 0)
                return -ENOMEM;
        return holds_admit_opening(c->events->holds, c->call->peer->uid, &q->event, 1,
                                   q->cpu >= 0 ? &cpus : NULL, why);
}

/* Opens it, disabled. Where its records go is said later: an exec of the target may enable it, and
 * they would be in the caller's buffer before anybody knows whether they may. */
static int event_call_open_event(EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        pid_t pid = event_request_has_target(q) ? c->target.tid : -1;
        Attr attr = q->attr;
        int fd, r = capacities_need(c->call->context->capacities);

        if (r < 0)
                return r;
        event_call_adapt(c, &attr);
        store_settle(c->call->context->store);
        fd = attr_open(&attr, q->cgroup >= 0 ? q->cgroup : pid, q->cpu, q->group,
                       q->flags & ~PERF_FLAG_FD_OUTPUT);
        if (fd < 0)
                return explain_open(-fd, &q->event, pid, q->cpu, why);
        c->fd = fd;
        return 0;
}

static int event_call_redirect(const EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;

        if (!(q->flags & PERF_FLAG_FD_OUTPUT) || q->group < 0 ||
            ioctl(c->fd, PERF_EVENT_IOC_SET_OUTPUT, q->group) == 0)
                return 0;
        return explain_open(errno, &q->event, event_request_has_target(q) ? c->target.tid : -1,
                            q->cpu, why);
}

/* It may count: the client has it from here on. */
static int event_call_finish(EventCall *c, Refusal *why) {
        uint64_t id;
        int r;

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
        event_call_end(c);
        return 0;
}

static int event_call_open(EventCall *c, Refusal *why) {
        int r;

        r = event_call_admit(c, why);
        if (r != 0)
                return r;
        r = event_call_open_event(c, why);
        if (r != 0 || !event_request_has_target(&c->request))
                return r;
        if (c->call->peer->uid == 0 || *c->untraceable)
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
                r = event_call_open(c, &why);
        if (r == 0)
                r = event_call_finish(c, &why);
        if (r == 0 || r == -EINPROGRESS)
                return 1;
        event_call_end(c);
        return reply_failure(r, &why, error);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-call.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "perf/attr.h"
#include "perf/explain.h"
#include "perf/thread.h"
#include "service/event-request.h"
#include "service/hold.h"
#include "service/reply.h"
#include "service/trace-rule.h"

struct EventCall {
        Service *service;
        sd_bus_message *m;
        Peer *peer;
        EventRequest request;
        QuotaCharge call, descriptor;
        LIST_ENTRY(EventCall) calls;

        Thread target; /* of a request that has one */
        HelperJob *job;
        char untraceable[256]; /* why the peer may not count it without count-other; empty: he may
                                */
        int fd;                /* the event, disabled */
};

static EventCall *event_call_free(EventCall *c) {
        if (!c)
                return NULL;
        c->job = helper_job_cancel(c->job);
        close_fd(c->fd);
        thread_release(&c->target);
        quota_release(&c->call);
        quota_release(&c->descriptor);
        LIST_REMOVE(c, calls);
        peer_unref(c->peer);
        sd_bus_message_unref(c->m);
        service_touch(c->service);
        free(c);
        return NULL;
}
DEFINE_CLEANUP(EventCall *, event_call_free)

static EventCall *event_call_find(Service *s, const sd_bus_message *m) {
        EventCall *c;

        LIST_FOREACH (c, &s->event_calls, calls)
                if (c->m == m)
                        return c;
        return NULL;
}

void event_calls_forget_peer(Service *s, Peer *peer) {
        EventCall *c, *next;

        for (c = LIST_FIRST(&s->event_calls); c; c = next) {
                next = LIST_NEXT(c, calls);
                if (c->peer == peer)
                        event_call_free(c);
        }
}

void event_calls_done(Service *s) {
        while (!LIST_EMPTY(&s->event_calls))
                event_call_free(LIST_FIRST(&s->event_calls));
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
        if (!handed_has(&c->service->handed, c->peer->uid, id))
                return refuse(
                        why, REFUSAL_BAD_DESCRIPTOR,
                        "option 'group': the leader is not (or no longer known as) an event that "
                        "OpenEvent gave to user %u; open the group's leader by OpenEvent as well",
                        (unsigned) c->peer->uid);
        return 0;
}

/* ---- beginning ---- */

static int event_call_new(Service *s, Peer *peer, sd_bus_message *m, EventCall **ret,
                          Refusal *why) {
        _cleanup_(event_call_freep) EventCall *c = calloc(1, sizeof(EventCall));
        int r;

        if (!c)
                return -ENOMEM;
        *c = (EventCall){ .service = s,
                          .m = sd_bus_message_ref(m),
                          .peer = peer_ref(peer),
                          .request = EVENT_REQUEST_NULL,
                          .target = THREAD_NULL,
                          .fd = -1 };
        LIST_INSERT_HEAD(&s->event_calls, c, calls);
        r = quota_charge(&s->quota, peer->uid, QUOTA_CALLS, 1, &c->call, why);
        if (r == 0)
                r = quota_charge(&s->quota, peer->uid, QUOTA_DESCRIPTORS, 1, &c->descriptor, why);
        if (r == 0)
                r = event_request_read(&s->pmus, m, &c->request, why);
        if (r == 0)
                r = group_check(c, why);
        if (r == 0)
                *ret = TAKE_PTR(c);
        return r;
}

/* The process behind a pidfd, or that thread of it that pid names. */
static int event_call_hold_pidfd(EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        pid_t process;
        int r;

        r = process_from_pidfd(q->pidfd, &process, why);
        if (r != 0)
                return r;
        r = thread_hold(q->pid > 0 ? q->pid : process, &c->target, why);
        if (r != 0)
                return r;
        /* its number was its own until now */
        if (!process_exists(q->pidfd))
                return refuse(why, REFUSAL_NO_SUCH_PROCESS,
                              "option 'pidfd': the process has ended");
        if (c->target.pid != process)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "pid: %d is no thread of process %d, which option 'pidfd' names; "
                              "give 0 for "
                              "its first one",
                              (int) q->pid, (int) process);
        return 0;
}

static void event_call_fail(EventCall *c, int r, const Refusal *why) {
        reply_failure_later(c->m, r, why);
        event_call_free(c);
}

static int refuse_ended(const EventCall *c, Refusal *why) {
        return refuse(why, REFUSAL_NO_SUCH_PROCESS, "'%s': process or thread %d has ended",
                      c->request.name, (int) c->target.tid);
}

static void event_call_inspected(void *userdata, int r, const ProcessFacts *facts,
                                 const Refusal *why) {
        EventCall *c = userdata;
        Refusal ended;
        const char *words;

        c->job = NULL;
        if (r == 0 && facts->zombie) {
                r = refuse_ended(c, &ended);
                why = &ended;
        }
        words = r == 0 ? trace_rule_denies(c->peer, facts) : NULL;
        if (words)
                (void) snprintf(c->untraceable, sizeof(c->untraceable),
                                "the caller may not trace process %d: %s", (int) c->target.pid,
                                words);
        if (r == 0)
                r = turns_again(c->service->turns, c->m);
        if (r != 0)
                event_call_fail(c, r, why);
}

/* 0 when it may go on at once, -EINPROGRESS when the helper is looking at the target. Root may
 * count everybody. */
static int event_call_begin(EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        int r;

        if (!event_request_has_target(q))
                return 0;
        r = q->pidfd >= 0 ? event_call_hold_pidfd(c, why)
                          : thread_hold(q->pid > 0 ? q->pid : c->peer->pid, &c->target, why);
        if (r != 0 || c->peer->uid == 0)
                return r;
        r = helper_inspect(c->service->helper, c->target.pidfd, event_call_inspected, c, &c->job);
        return r < 0 ? r : -EINPROGRESS;
}

/* ---- authorization ---- */

static int event_call_check_hold(const EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        const char *field = q->needs.by[ATTR_NEED_HOLD];

        if (!field || holds_cover(c->service, c->peer->uid, q->event.pmu, q->cpu))
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
        r = bouncer_check(c->service->bouncer, c->peer, c->m, actions, NULL, &denied);
        if (r <= 0)
                return r;
        (void) refuse(why, r, "%s%s%.600s", c->untraceable, *c->untraceable ? "; " : "",
                      denied.text);
        event_request_blame(&c->request, actions, why);
        return r;
}

/* ---- opening ---- */

/* What the caller was not allowed is left out; what he holds he keeps. */
static void event_call_adapt(EventCall *c) {
        EventRequest *q = &c->request;
        const unsigned greater = ACTION_COUNT_KERNEL | ACTION_COUNT_OTHER | ACTION_COUNT_SYSTEM;
        uint64_t flags = attr_number(&q->attr, ATTR_FLAGS);

        if (c->peer->uid != 0 && !(event_request_actions(q, *c->untraceable) & greater))
                attr_confine(&q->attr);
        if (q->event.pmu->kind == PMU_CORE && !event_request_joins(q) && !(flags & attr_flag(1)) &&
            holds_cover(c->service, c->peer->uid, q->event.pmu, q->cpu))
                attr_set_number(&q->attr, ATTR_FLAGS,
                                attr_number(&q->attr, ATTR_FLAGS) | attr_flag(2));
}

static int event_call_admit(const EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;

        if (q->cpu >= 0 && cpuset_add(&cpus, (unsigned) q->cpu) < 0)
                return -ENOMEM;
        return holds_admit_opening(c->service, c->peer->uid, &q->event, 1,
                                   q->cpu >= 0 ? &cpus : NULL, why);
}

/* Opens it, disabled. */
static int event_call_open_event(EventCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        pid_t pid = event_request_has_target(q) ? c->target.tid : -1;
        int fd;

        store_settle(c->service->store);
        fd = attr_open(&q->attr, q->cgroup >= 0 ? q->cgroup : pid, q->cpu, q->group, q->flags);
        if (fd < 0)
                return explain_open(-fd, &q->event, pid, q->cpu, why);
        c->fd = fd;
        return 0;
}

/* It may count: the client has it from here on. */
static int event_call_finish(EventCall *c) {
        uint64_t id;
        int r;

        if (ioctl(c->fd, PERF_EVENT_IOC_ID, &id) < 0)
                return -errno;
        r = handed_add(&c->service->handed, c->peer->uid, id);
        if (r < 0)
                return r;
        if (c->request.start && ioctl(c->fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
                return -errno;
        r = sd_bus_reply_method_return(c->m, "h", c->fd);
        if (r < 0)
                return r;
        event_call_free(c);
        return 0;
}

static int event_call_check_target(const EventCall *c, Refusal *why) {
        int r = thread_check(&c->target);

        return r == -ESRCH ? refuse_ended(c, why) : r;
}

/* It is open, disabled; the target may have become somebody else's program meanwhile. */
static void event_call_verified(void *userdata, int r, const ProcessFacts *facts,
                                const Refusal *why) {
        EventCall *c = userdata;
        const char *words;
        Refusal changed;

        c->job = NULL;
        words = r == 0 ? trace_rule_denies(c->peer, facts) : NULL;
        if (r == 0) {
                r = event_call_check_target(c, &changed);
                why = &changed;
        }
        if (r == 0 && words) {
                r = refuse(&changed, REFUSAL_NOT_PERMITTED,
                           "process %d changed while it was being opened: %s", (int) c->target.pid,
                           words);
        }
        if (r == 0)
                r = event_call_finish(c);
        if (r != 0)
                event_call_fail(c, r, why);
}

static int event_call_open(EventCall *c, Refusal *why) {
        int r;

        r = event_call_admit(c, why);
        if (r != 0)
                return r;
        event_call_adapt(c);
        r = event_call_open_event(c, why);
        if (r != 0 || !event_request_has_target(&c->request))
                return r;
        r = event_call_check_target(c, why);
        if (r != 0)
                return r;
        if (c->peer->uid == 0 || *c->untraceable)
                return 0;
        r = helper_inspect(c->service->helper, c->target.pidfd, event_call_verified, c, &c->job);
        return r < 0 ? r : -EINPROGRESS;
}

int event_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Service *s = userdata;
        Peer *peer = peers_sender(s->peers, m);
        EventCall *c = event_call_find(s, m);
        Refusal why = REFUSAL_NULL;
        int r = 0;

        if (!c) {
                r = event_call_new(s, peer, m, &c, &why);
                if (r != 0)
                        return reply_failure(r, &why, error);
                r = event_call_begin(c, &why);
        }
        if (r == 0)
                r = event_call_authorize(c, &why);
        if (r == 0)
                r = event_call_open(c, &why);
        if (r == 0)
                r = event_call_finish(c);
        if (r == 0 || r == -EINPROGRESS)
                return 1;
        event_call_free(c);
        return reply_failure(r, &why, error);
}

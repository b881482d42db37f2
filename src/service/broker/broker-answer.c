/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker-answer.h"

#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>

#include "perf/event/attr.h"
#include "service/auth/action.h"
#include "service/auth/trace-rule.h"
#include "service/pmu/capacity.h"

#define NO_SUCH_TASK INT_MAX /* above the kernel's PID_MAX_LIMIT */

/* A call, its broker, and the event that is asked for. */
typedef struct Asking {
        const Broker *broker;
        const BrokerRequest *q;
        size_t n_attr;
        EventRequest request;
        Thread target;
        bool untraceable; /* the task may not trace the target */
} Asking;

static int answer(BrokerReply *ret, BrokerAnswer what, int error) {
        *ret = (BrokerReply){ .answer = what, .error = error };
        return -1;
}

/* ---- whose rights ---- */

static bool ids_are(const unsigned ids[3], unsigned id) {
        return ids[0] == id && ids[1] == id && ids[2] == id;
}

static bool task_has_group(const TaskFacts *t, const Broker *b) {
        for (size_t i = 0; i < b->n_gids; i++)
                if (ids_are(t->gid, b->gids[i]))
                        return true;
        return false;
}

/* Whether it has the rights of the broker's user, no more and no fewer. no_new_privs: it keeps them
 * with whatever it executes while the event counts. */
static bool task_is_users(const TaskFacts *t, const Broker *b) {
        return ids_are(t->uid, b->uid) && task_has_group(t, b) && t->permitted == 0 &&
               t->no_new_privs && t->same_namespaces;
}

/* Whether the task may trace another process: see other.h. */
static bool task_may_trace(const OtherFacts *o, const Broker *b) {
        bool related = o->descends && o->start >= b->start;
        ProcessFacts process = o->process;

        /* one with no_new_privs gains nothing by what it executes later */
        if (!o->no_new_privs && trace_rule_is_void(TRACE_RULE_SUID_DUMPABLE))
                return false;
        process.same_user_ns = o->same_user_ns;
        return (related || o->proven) && !o->sandboxed && o->same_label &&
               !process_untraceable(&process, b->uid, b->gids, b->n_gids);
}

/* ---- what it asks for ---- */

/* False: the kernel has an error for it whatever the rest is. */
static bool place_is_possible(const Asking *a) {
        const CpuSet *possible = &a->broker->brokers->context->pmus.possible;
        const BrokerRequest *q = a->q;
        const uint64_t known = PERF_FLAG_FD_CLOEXEC | PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT |
                               PERF_FLAG_PID_CGROUP;

        if (q->flags & ~known || q->cpu < -1 ||
            (q->cpu >= 0 && !cpuset_has(possible, (unsigned) q->cpu)))
                return false;
        if (q->flags & PERF_FLAG_PID_CGROUP)
                return q->cpu >= 0 && q->target == BROKER_CGROUP;
        return q->cpu >= 0 || q->target != BROKER_CPU;
}

static void request_place(Asking *a, int target, int group) {
        const BrokerRequest *q = a->q;
        EventRequest *r = &a->request;

        *r = EVENT_REQUEST_NULL;
        r->cpu = q->cpu;
        r->flags = (unsigned long) q->flags;
        r->group = group;
        r->pid = -1;
        a->target = THREAD_NULL;
        if (q->target == BROKER_CGROUP)
                r->cgroup = target;
        if (q->target == BROKER_TASK) {
                r->pid = q->tid;
                a->target = (Thread){ q->tid, q->task.process, target, -1 };
        }
        if (q->target == BROKER_OTHER) {
                r->pid = q->tid;
                a->target = (Thread){ q->tid, q->other.process.pid, target, -1 };
                a->untraceable = !task_may_trace(&q->other, a->broker);
        }
        if (q->target == BROKER_NOBODY) {
                r->pid = NO_SUCH_TASK;
                a->target.tid = NO_SUCH_TASK;
        }
}

/* The answer to an attr that was refused. What the service does not know is what an older kernel
 * would not know, so that programs fall back in the same way. */
static int answer_attr(const Asking *a, int r, BrokerReply *ret) {
        bool read = attr_number(&a->request.attr, ATTR_SIZE) > 0;

        if (r < 0)
                return answer(ret, BROKER_FAIL, -r);
        if (!read) {
                (void) answer(ret, BROKER_FAIL, E2BIG);
                ret->size = r == REFUSAL_ATTR_SIZE ? attr_kernel_size() : ATTR_SIZE_KNOWN;
                return -1;
        }
        if (r == REFUSAL_NOT_PERMITTED && !attr_is_known(&a->request.attr))
                return answer(ret, BROKER_FAIL, EINVAL);
        if (r == REFUSAL_NO_SUCH_EVENT)
                return answer(ret, BROKER_FAIL, ENOENT);
        return answer(ret, BROKER_PASS, 0);
}

/* ---- whether it gets it ---- */

/* Those who may count more than a user's own programs in user space may count these too. */
static bool is_authorized(const Asking *a) {
        unsigned actions = event_request_actions(&a->request, a->untraceable);

        if (a->broker->actions)
                actions &= ~(unsigned) ACTION_SAMPLE_OWN;
        return !(actions & ~a->broker->actions);
}

/* 0, or the answer is in ret. */
static int check_group(const Asking *a, BrokerReply *ret) {
        int fd = a->request.group;

        if (fd < 0)
                return 0;
        switch (event_check_leader(a->broker->brokers->events, a->broker->uid, fd)) {
        case EVENT_LEADER_ISSUED:
                return 0;
        case EVENT_LEADER_STRANGE: /* the kernel has opened it without us, and may do so again */
                return answer(ret, BROKER_PASS, 0);
        default:
                return answer(ret, BROKER_FAIL, EBADF);
        }
}

static int check_holds(const EventOpening *o, BrokerReply *ret) {
        Refusal why;
        int r = event_check_hold(o, &why);

        if (r > 0)
                return answer(ret, BROKER_PASS, 0);
        if (r == 0)
                r = event_admit(o, &why);
        if (r > 0)
                r = -refusal_errno(r);
        return r == 0 ? 0 : answer(ret, BROKER_FAIL, -r);
}

static int event_issue(const Asking *a, int event) {
        uint64_t id;

        if (ioctl(event, PERF_EVENT_IOC_ID, &id) < 0)
                return -errno;
        return issued_events_add(&a->broker->brokers->events->issued, a->broker->uid, id);
}

static int answer_event(const Asking *a, const EventOpening *o, BrokerReply *ret) {
        _cleanup_close_ int event = -1;
        int r = capacities_need(a->broker->brokers->context->capacities);

        if (r < 0)
                return answer(ret, BROKER_FAIL, -r);
        event = event_open(o);
        r = event < 0 ? event : event_issue(a, event);
        if (r < 0)
                return answer(ret, BROKER_FAIL, -r);
        (void) answer(ret, BROKER_GIVE, 0);
        ret->start = a->request.start;
        ret->redirect = event_request_redirects(&a->request);
        ret->recheck = a->q->target == BROKER_OTHER && !a->untraceable;
        return TAKE_FD(event);
}

static int answer_request(Asking *a, BrokerReply *ret) {
        Brokers *brokers = a->broker->brokers;
        EventOpening o = { .events = brokers->events,
                           .uid = a->broker->uid,
                           .request = &a->request,
                           .target = &a->target,
                           .untraceable = a->untraceable };
        Refusal why;
        int r;

        r = event_request_take_attr(&brokers->context->pmus, a->q->attr, a->n_attr, &a->request,
                                    &why);
        if (r != 0)
                return answer_attr(a, r, ret);
        if (!place_is_possible(a))
                return answer(ret, BROKER_FAIL, EINVAL);
        if (!is_authorized(a))
                return answer(ret, BROKER_PASS, 0);
        if (check_group(a, ret) < 0 || check_holds(&o, ret) < 0)
                return -1;
        return answer_event(a, &o, ret);
}

int broker_answer(const Broker *b, const BrokerRequest *q, size_t n_attr, int target, int group,
                  BrokerReply *ret) {
        Asking a = { .broker = b, .q = q, .n_attr = n_attr };

        if (!task_is_users(&q->task, b))
                return answer(ret, BROKER_PASS, 0);
        request_place(&a, target, group);
        return answer_request(&a, ret);
}

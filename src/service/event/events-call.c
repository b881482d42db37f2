/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "events-call.h"

#include <sys/ioctl.h>

#include "perf/event/explain.h"
#include "perf/group/gate.h"
#include "perf/process/procfs.h"
#include "service/bus/delivery.h"
#include "service/counter/attach-job.h"
#include "service/event/event-auth.h"
#include "service/event/event-stream.h"
#include "service/pmu/capacity.h"
#include "service/util/reply.h"

typedef struct EventsCall {
        Request *call;
        Events *events;
        EventRequest request;
        AttachJob attach;
        Thread target;       /* of the job, for rules; borrows its pidfd */
        EventStream *stream; /* the events, disabled; NULL: none are open */
        bool opening;        /* the caller is authorized */
} EventsCall;

static void events_call_end(void *work) {
        EventsCall *c = work;

        attach_job_done(&c->attach);
        event_stream_free(c->stream);
        request_done(c->call);
        free(c);
}

/* A tree's threads are of several processes, which stand while they are opened. */
static void events_call_describe(EventsCall *c, EventOpening *ret) {
        const AttachJob *a = &c->attach;

        c->target = (Thread){ .tid = a->pid,
                              .pid = a->pid,
                              .pidfd = a->descendants ? -1 : a->pidfd,
                              .directory = -1 };
        *ret = (EventOpening){ .events = c->events,
                               .uid = c->call->peer->uid,
                               .root = c->call->peer->root,
                               .request = &c->request,
                               .target = &c->target,
                               .untraceable = *a->untraceable };
}

/* ---- what is opened ---- */

static void events_call_undo(AttachJob *a) {
        EventsCall *c = a->what;

        c->stream = event_stream_free(c->stream);
}

/* The errno of the first one that failed for another reason than that its thread has ended. */
static int events_call_take(EventsCall *c, const pid_t *tids, const int *fds, size_t n) {
        int error = 0;

        for (size_t i = 0; i < n; i++)
                if (fds[i] >= 0)
                        event_stream_add(c->stream, tids[i], fds[i]);
                else if (fds[i] != -ESRCH && error == 0)
                        error = -fds[i];
        return error;
}

static int events_call_open_threads(EventsCall *c, const pid_t *tids, size_t n, Refusal *why) {
        _cleanup_free_ int *fds = calloc(MAX(n, 1u), sizeof(int));
        const EventRequest *q = &c->request;
        EventOpening o;
        int error, r;

        if (!fds)
                return -ENOMEM;
        events_call_describe(c, &o);
        /* the hold may have ended, or an exclusive one been granted, since the call was */
        r = event_check_hold(&o, why);
        if (r == 0)
                r = event_admit(&o, why);
        if (r == 0)
                r = event_open_threads(&o, tids, n, fds);
        if (r != 0)
                return r;
        error = events_call_take(c, tids, fds, n);
        if (error != 0)
                return explain_open(error, &q->event, c->attach.pid, q->cpu, why);
        return c->stream->n_items > 0 ? 0 : attach_job_refuse_ended(&c->attach, why);
}

static int events_call_open(AttachJob *a, const pid_t *tids, const pid_t *pids, size_t n,
                            Refusal *why) {
        EventsCall *c = a->what;
        int r = event_stream_new(c->events, c->call->peer, &c->request, n, &c->stream, why);

        if (r == 0)
                r = events_call_open_threads(c, tids, n, why);
        if (r != 0)
                events_call_undo(a);
        return r;
}

static const AttachKind events_kind = {
        .open = events_call_open,
        .undo = events_call_undo,
};

/* ---- handing out ---- */

static int events_call_issue(const EventsCall *c) {
        const EventStream *s = c->stream;
        _cleanup_free_ uint64_t *ids = calloc(s->n_items, sizeof(uint64_t));

        if (!ids)
                return -ENOMEM;
        for (size_t i = 0; i < s->n_items; i++)
                if (ioctl(s->items[i].fd, PERF_EVENT_IOC_ID, &ids[i]) < 0)
                        return -errno;
        return issued_events_add_all(&c->events->issued, c->call->peer->uid, ids, s->n_items);
}

static void events_enable(void *userdata) {
        const EventStream *s = userdata;

        for (size_t i = 0; i < s->n_items; i++)
                (void) ioctl(s->items[i].fd, PERF_EVENT_IOC_ENABLE, 0);
}

static int events_call_reply(EventsCall *c) {
        size_t n = c->stream->n_items;
        _cleanup_close_ int fd = -1;
        int r = event_stream_start(c->stream, &fd);

        if (r == 0)
                r = sd_bus_reply_method_return(c->call->m, "uh", (uint32_t) n, fd);
        if (r < 0)
                return r;
        totals_add(&c->call->context->totals, TOTAL_EVENTS_OPENED, n);
        c->stream = NULL; /* it frees itself from now on */
        return 0;
}

/* All are open and allowed. Ends the call unless it fails. */
static int events_call_finish(EventsCall *c, Refusal *why) {
        EventOpening o;
        int r;

        events_call_describe(c, &o);
        /* an exclusive hold may have been granted since they were opened */
        r = event_admit(&o, why);
        if (r == 0)
                r = events_call_issue(c);
        if (r == 0 && c->request.start)
                (void) gate_all(attr_number(&c->request.attr, ATTR_FLAGS) & attr_flag(1), NULL,
                                events_enable, c->stream);
        if (r == 0)
                r = events_call_reply(c);
        if (r == 0)
                events_call_end(c);
        return r;
}

/* ---- the call ---- */

/* The target was inspected or opened. */
static void events_call_attached(void *userdata, int r, const Refusal *why) {
        EventsCall *c = userdata;
        bool asks_more = r == REFUSAL_NOT_PERMITTED && *c->attach.untraceable && !c->attach.allowed;
        Refusal mine;

        if ((!c->opening && r == 0) || asks_more) {
                request_resume(c->call);
                return;
        }
        if (r == 0) {
                r = events_call_finish(c, &mine);
                why = &mine;
        }
        if (r != 0)
                request_fail(c->call, r, why);
}

static int events_call_new(Events *events, Peer *peer, sd_bus_message *m, EventsCall **ret,
                           Refusal *why) {
        EventsCall *c = calloc(1, sizeof(EventsCall));
        int r;

        if (!c)
                return -ENOMEM;
        *c = (EventsCall){ .events = events, .attach = ATTACH_JOB_NULL };
        r = request_begin(events->context, peer, m, c, events_call_end, &c->call, why);
        if (r == 0)
                r = event_request_read_tree(&events->context->pmus, m, &c->request, why);
        if (r == 0)
                *ret = c;
        else
                events_call_end(c);
        return r;
}

/* 0: it goes on at once; -EINPROGRESS: the reader inspects the target. Root may count every
 * process. */
static int events_call_begin(EventsCall *c, Refusal *why) {
        const EventRequest *q = &c->request;
        AttachJob *a = &c->attach;
        int r;

        a->context = c->events->context;
        a->kind = &events_kind;
        a->what = c;
        a->peer = c->call->peer;
        a->done = events_call_attached;
        a->userdata = c;
        a->descendants = q->descendants;
        r = attach_job_hold(a, 0, q->pidfd, q->procfd, why);
        /* the reader tells which process a proof holds */
        if (r != 0 || (c->call->peer->root && q->procfd < 0))
                return r;
        r = attach_job_inspect(a);
        return r < 0 ? r : -EINPROGRESS;
}

static int events_call_authorize(EventsCall *c, Refusal *why) {
        const AttachJob *a = &c->attach;
        EventOpening o;
        int r;

        events_call_describe(c, &o);
        r = event_authorize(&o, c->call, attach_job_target_uid(a), a->untraceable, why);
        return r > 0 && a->hidden ? procfs_refuse_unseen(a->pid, why) : r;
}

static int events_call_authorized(EventsCall *c, Refusal *why) {
        int r = capacities_need(c->call->context->capacities);

        if (r != 0)
                return r;
        c->opening = true;
        c->attach.allowed = *c->attach.untraceable;
        r = attach_job_open(&c->attach, why);
        return r == 0 ? events_call_finish(c, why) : r;
}

int events_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Events *events = userdata;
        Peer *peer = peers_sender(events->context->peers, m);
        EventsCall *c = request_work(events->context, m, events_call_end);
        Refusal why = REFUSAL_NULL;
        int r = 0;

        if (!c) {
                r = events_call_new(events, peer, m, &c, &why);
                if (r != 0)
                        return reply_failure(r, &why, error);
                r = events_call_begin(c, &why);
        }
        if (r == 0)
                r = events_call_authorize(c, &why);
        if (r == 0)
                r = delivery_admit(events->context, peer, m, 1, &why);
        if (r == 0)
                r = events_call_authorized(c, &why);
        if (r == 0 || r == -EINPROGRESS)
                return 1;
        events_call_end(c);
        return reply_failure(r, &why, error);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opening.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "perf/threads.h"
#include "service/hold.h"
#include "service/opening-request.h"
#include "service/reply.h"

#define OPEN_ROUNDS 8 /* tries to open on all threads while none is born */

struct Opening {
        Service *service;
        sd_bus_message *m;
        Peer *peer;
        OpeningRequest request;
        QuotaCharge call;
        LIST_ENTRY(Opening) openings;

        pid_t pid; /* the target of a process counter */
        int pidfd;
        HelperJob *job;
        bool inspected;
        const char *untraceable; /* why the caller may not trace it; NULL: he may */

        CounterSet **sets;
        size_t n_sets;
};

static Opening *opening_free(Opening *o) {
        if (!o)
                return NULL;
        helper_job_cancel(o->job);
        for (size_t i = 0; i < o->n_sets; i++)
                counter_set_free(o->sets[i]);
        free(o->sets);
        opening_request_done(&o->request);
        close_fd(o->pidfd);
        quota_release(&o->call);
        LIST_REMOVE(o, openings);
        peer_unref(o->peer);
        sd_bus_message_unref(o->m);
        free(o);
        return NULL;
}
DEFINE_CLEANUP(Opening *, opening_free)

static Opening *opening_find(Service *s, const sd_bus_message *m) {
        Opening *o;

        LIST_FOREACH(o, &s->openings, openings)
                if (o->m == m)
                        return o;
        return NULL;
}

void openings_forget_peer(Service *s, Peer *peer) {
        Opening *o, *next;

        for (o = LIST_FIRST(&s->openings); o; o = next) {
                next = LIST_NEXT(o, openings);
                if (o->peer == peer)
                        opening_free(o);
        }
}

static int opening_new(Service *s, Peer *peer, sd_bus_message *m, Opening **ret, Refusal *why) {
        _cleanup_(opening_freep) Opening *o = calloc(1, sizeof(Opening));
        int r;

        if (!o)
                return -ENOMEM;
        *o = (Opening){ .service = s, .m = sd_bus_message_ref(m), .peer = peer_ref(peer),
                        .request = OPENING_REQUEST_NULL, .pidfd = -1 };
        LIST_INSERT_HEAD(&s->openings, o, openings);
        r = quota_charge(&s->quota, peer->uid, QUOTA_CALLS, 1, &o->call, why);
        if (r == 0)
                r = opening_request_read(s, m, peer, &o->request, why);
        if (r != 0)
                return r;
        *ret = TAKE_PTR(o);
        return 0;
}

/* Ends a call outside of its handler. */
static void opening_fail(Opening *o, int r, const Refusal *why) {
        reply_failure_later(o->m, r, why);
        opening_free(o);
}

static int opening_hold_target(Opening *o, Refusal *why) {
        const OpeningRequest *q = &o->request;
        int r;

        if (q->pidfd < 0) {
                o->pid = q->pid ? (pid_t) q->pid : o->peer->pid;
                return process_open(o->pid, &o->pidfd, why);
        }
        r = process_from_pidfd(q->pidfd, &o->pid, why);
        if (r != 0)
                return r;
        o->pidfd = fcntl(q->pidfd, F_DUPFD_CLOEXEC, 3);
        return o->pidfd < 0 ? -errno : 0;
}

/* With fs.suid_dumpable=1 the kernel leaves our events on a process that becomes setuid later. */
static bool suid_stays_dumpable(void) {
        char c = 0;
        _cleanup_close_ int fd = open("/proc/sys/fs/suid_dumpable", O_RDONLY | O_CLOEXEC);

        return fd < 0 || read(fd, &c, 1) != 1 || c == '1';
}

static const char *opening_untraceable(const Opening *o, const ProcessFacts *facts) {
        if (o->peer->uid == 0)
                return NULL;
        if (suid_stays_dumpable())
                return "fs.suid_dumpable is 1, and it may become privileged later";
        return process_untraceable(facts, o->peer->uid, o->peer->gids, o->peer->n_gids);
}

static void opening_inspected(void *userdata, int r, const ProcessFacts *facts,
                              const Refusal *why) {
        Opening *o = userdata;

        o->job = NULL;
        if (r == 0) {
                o->inspected = true;
                o->untraceable = opening_untraceable(o, facts);
                r = sd_bus_enqueue_for_read(o->service->bus, o->m);
        }
        if (r != 0)
                opening_fail(o, r, why);
}

/* Parts for the target's threads; they may be outdated as soon as they are there. */
static int opening_add_parts(Opening *o, Group *g, Threads *threads, Refusal *why) {
        const OpeningRequest *q = &o->request;
        int r;

        if (q->scope != GROUP_PROCESS)
                return group_add_cpus(g, &q->cpus, &o->service->pmus.online);
        if (threads->n_tids == 0) {
                r = threads_list(o->pid, threads, why);
                if (r != 0)
                        return r;
        }
        return group_add_target(g, o->pid, o->pidfd, threads);
}

static bool opening_is_pinned(const Opening *o, const Group *g) {
        const OpeningRequest *q = &o->request;

        if (q->pinned)
                return true;
        /* What a holder opens inside of his hold keeps what he was promised; an inherited event cannot. */
        return !q->monitor && !q->descendants && g->events[0].pmu->kind == PMU_CORE &&
               holds_grants(o->service, o->peer->uid, g->events[0].pmu);
}

static int opening_open_set(Opening *o, size_t first, size_t n, Threads *threads, CounterSet **ret,
                            Refusal *why) {
        const OpeningRequest *q = &o->request;
        CounterSetOptions options = {
                .uid = o->peer->uid,
                .peer = o->peer,
                .name = q->name,
                .cpus = q->scope == GROUP_PROCESS ? NULL : &q->cpus,
                .monitor = q->monitor,
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
        g->pinned = opening_is_pinned(o, g);
        if (q->scope == GROUP_CGROUP) {
                g->cgroup = fcntl(q->cgroup, F_DUPFD_CLOEXEC, 3);
                if (g->cgroup < 0)
                        return -errno;
        }
        r = opening_add_parts(o, g, threads, why);
        if (r != 0)
                return r;
        return counter_set_new(o->service, TAKE_PTR(g), &options, ret, why);
}

static void opening_close_sets(Opening *o) {
        while (o->n_sets > 0)
                counter_set_free(o->sets[--o->n_sets]);
}

static int opening_open_sets(Opening *o, Threads *threads, Refusal *why) {
        size_t n_events = o->request.n_events;
        size_t step = o->request.group ? n_events : 1;

        if (!o->sets) {
                o->sets = calloc(n_events, sizeof(CounterSet *));
                if (!o->sets)
                        return -ENOMEM;
        }
        for (size_t first = 0; first < n_events; first += step) {
                int r = opening_open_set(o, first, step, threads, &o->sets[o->n_sets], why);

                if (r != 0) {
                        opening_close_sets(o);
                        return r;
                }
                o->n_sets++;
        }
        return 0;
}

/* Opens on all threads of the target. A thread that is born between the look and the opening may have
 * inherited the event or not; so the opening counts only if no thread was born or has died meanwhile. */
static int opening_open(Opening *o, Refusal *why) {
        if (o->request.scope != GROUP_PROCESS) {
                Threads none = THREADS_NULL;

                return opening_open_sets(o, &none, why);
        }
        for (int round = 0; round < OPEN_ROUNDS; round++) {
                _cleanup_(threads_done) Threads before = THREADS_NULL, after = THREADS_NULL;
                int r = opening_open_sets(o, &before, why);

                if (r == REFUSAL_NO_SUCH_PROCESS && round + 1 < OPEN_ROUNDS)
                        continue; /* one of the threads has ended */
                if (r == 0)
                        r = threads_list(o->pid, &after, why);
                if (r != 0)
                        return r;
                if (threads_equal(&before, &after))
                        return 0;
                opening_close_sets(o);
        }
        return refuse(why, REFUSAL_BUSY,
                      "process %d makes threads faster than they can be counted; try again, or open "
                      "the counter before it starts them",
                      (int) o->pid);
}

static int opening_make_counters(Opening *o, sd_bus_message *reply) {
        int r = sd_bus_message_open_container(reply, 'a', "o");

        for (size_t i = 0; i < o->n_sets && r >= 0; i++)
                for (size_t event = 0; event < o->sets[i]->group->n_events && r >= 0; event++) {
                        Counter *c;

                        r = counter_new(o->sets[i], event, &c);
                        if (r >= 0)
                                r = sd_bus_message_append_basic(reply, 'o', c->path);
                }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* All is open and allowed: from here on it counts. */
static int opening_finish(Opening *o) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(o->m, &reply);

        if (r >= 0)
                r = opening_make_counters(o, reply);
        if (r < 0)
                return r;
        if (o->request.start)
                for (size_t i = 0; i < o->n_sets; i++)
                        group_start(o->sets[i]->group);
        r = sd_bus_send(NULL, reply, NULL);
        if (r < 0)
                return r;
        o->n_sets = 0; /* they live on their own now */
        opening_free(o);
        return 0;
}

/* The target is open, disabled; it may have become somebody else's program meanwhile. */
static void opening_verified(void *userdata, int r, const ProcessFacts *facts, const Refusal *why) {
        Opening *o = userdata;
        Refusal changed;
        const char *untraceable;

        o->job = NULL;
        if (r == 0) {
                untraceable = opening_untraceable(o, facts);
                if (untraceable && !o->untraceable)
                        r = refuse(&changed, REFUSAL_NOT_PERMITTED,
                                   "process %d changed while it was being opened: %s", (int) o->pid,
                                   untraceable);
        }
        if (r != 0)
                opening_fail(o, r, r > 0 && !why ? &changed : why);
        else if ((r = opening_finish(o)) < 0)
                opening_fail(o, r, NULL);
}

/* Whether the opening needs the helper: not for root, who may count everybody. */
static bool opening_inspects(const Opening *o) {
        return o->request.scope == GROUP_PROCESS && o->peer->uid != 0;
}

static int opening_authorized(Opening *o, Refusal *why) {
        Service *s = o->service;
        int r;

        r = holds_admit_opening(s, o->peer->uid, o->request.events, o->request.n_events,
                                o->request.scope == GROUP_PROCESS ? NULL : &o->request.cpus, why);
        if (r == 0)
                r = opening_open(o, why);
        if (r != 0)
                return r;
        if (opening_inspects(o))
                return helper_inspect(s->helper, o->pidfd, opening_verified, o, &o->job);
        return opening_finish(o);
}

/* Starts a call: 0 when it may go on at once, -EINPROGRESS when the helper is looking at the target. */
static int opening_begin(Opening *o, Refusal *why) {
        int r;

        if (o->request.scope != GROUP_PROCESS)
                return 0;
        r = opening_hold_target(o, why);
        if (r != 0 || !opening_inspects(o))
                return r;
        r = helper_inspect(o->service->helper, o->pidfd, opening_inspected, o, &o->job);
        return r < 0 ? r : -EINPROGRESS;
}

int opening_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Service *s = userdata;
        Peer *peer = peers_sender(s->peers, m);
        Opening *o = opening_find(s, m);
        Refusal why = REFUSAL_NULL;
        int r = 0;

        if (!o) {
                r = opening_new(s, peer, m, &o, &why);
                if (r != 0)
                        return reply_failure(r, &why, error);
                r = opening_begin(o, &why);
        }
        if (r == 0)
                r = bouncer_check(s->bouncer, peer, m,
                                  opening_request_actions(&o->request, o->untraceable), NULL, &why);
        if (r == -EINPROGRESS)
                return 1;
        if (r == 0)
                r = opening_authorized(o, &why);
        if (r == 0)
                return 1;
        opening_free(o);
        return reply_failure(r, &why, error);
}

void openings_done(Service *s) {
        while (!LIST_EMPTY(&s->openings))
                opening_free(LIST_FIRST(&s->openings));
}

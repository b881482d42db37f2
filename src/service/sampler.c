/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampler.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <sys/socket.h>

#include "service/counter.h"
#include "service/sampler-clock.h"

/* ---- clients ---- */

static SamplerClient *client_find(const Samplers *all, const Peer *peer) {
        SamplerClient *c;

        LIST_FOREACH (c, &all->clients, clients)
                if (c->peer == peer)
                        return c;
        return NULL;
}

static int client_get(Samplers *all, Peer *peer, SamplerClient **ret) {
        SamplerClient *c = client_find(all, peer);

        if (peer->gone)
                return -ESTALE;
        if (!c) {
                c = calloc(1, sizeof(SamplerClient));
                if (!c)
                        return -ENOMEM;
                c->peer = peer_ref(peer);
                LIST_INSERT_HEAD(&all->clients, c, clients);
                service_touch(all->service);
        }
        *ret = c;
        return 0;
}

static void client_free(Samplers *all, SamplerClient *c) {
        c->blocked = true; /* it stays while its samplers go */
        while (!LIST_EMPTY(&c->samplers))
                sampler_free(LIST_FIRST(&c->samplers));
        LIST_REMOVE(c, clients);
        peer_unref(c->peer);
        free(c);
        service_touch(all->service);
}

static void client_free_unused(Samplers *all, SamplerClient *c) {
        if (!c->blocked && LIST_EMPTY(&c->samplers))
                client_free(all, c);
}

int samplers_block(Service *s, Peer *peer) {
        SamplerClient *c;
        Sampler *a;
        int r = client_get(s->samplers, peer, &c);

        if (r < 0)
                return r;
        c->blocked = true;
        LIST_FOREACH (a, &c->samplers, samplers)
                schedule_move(&s->samplers->schedule, &a->entry, SCHEDULE_NEVER);
        sampler_clock_set(s->samplers);
        return 0;
}

void samplers_unblock(Service *s, Peer *peer) {
        SamplerClient *c = client_find(s->samplers, peer);
        Sampler *a;

        if (!c)
                return;
        c->blocked = false;
        LIST_FOREACH (a, &c->samplers, samplers)
                schedule_move(&s->samplers->schedule, &a->entry, tick_due(&a->tick));
        sampler_clock_set(s->samplers);
        client_free_unused(s->samplers, c);
}

bool samplers_any(const Service *s, const Peer *peer) {
        const SamplerClient *c = client_find(s->samplers, peer);

        return c && !LIST_EMPTY(&c->samplers);
}

void samplers_forget_peer(Service *s, const Peer *peer) {
        SamplerClient *c = client_find(s->samplers, peer);

        if (c)
                client_free(s->samplers, c);
}

static bool sampler_reads(const Sampler *a, const CounterSet *set) {
        for (size_t i = 0; i < a->n_counters; i++)
                if (a->counters[i]->counter && a->counters[i]->counter->set == set)
                        return true;
        return false;
}

void samplers_forget_reader(Service *s, const Peer *peer, const CounterSet *set) {
        SamplerClient *c = client_find(s->samplers, peer);
        Sampler *a;

        /* the client goes with its last one, if nothing else keeps it: so from the start each time
         */
        while (c) {
                LIST_FOREACH (a, &c->samplers, samplers)
                        if (sampler_reads(a, set))
                                break;
                if (!a)
                        break;
                sampler_free(a);
                c = client_find(s->samplers, peer);
        }
}

bool samplers_are_idle(const Service *s) {
        return LIST_EMPTY(&s->samplers->clients);
}

/* ---- samplers ---- */

static int compare_samplers(const void *a, const void *b) {
        const Sampler *x = a, *y = b;

        return x->id < y->id ? -1 : x->id > y->id;
}

Sampler *sampler_find(Service *s, uint64_t id) {
        Sampler key = { .id = id };
        Sampler **found = tfind(&key, &s->samplers->tree, compare_samplers);

        return found ? *found : NULL;
}

static int sampler_take_counters(Sampler *a, const SamplerOptions *o) {
        a->counters = calloc(MAX(o->n_counters, 1u), sizeof(Sampled *));
        a->record = calloc(1, PERFALLOC_SAMPLE_SIZE(o->n_counters));
        if (!a->counters || !a->record)
                return -ENOMEM;
        a->record->n_readings = o->n_counters;
        for (; a->n_counters < o->n_counters; a->n_counters++) {
                int r = sampled_new(o->counters[a->n_counters], &a->counters[a->n_counters]);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* The reader has closed its end, or will not read any more. */
static int stream_hung_up(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        sampler_free(userdata);
        return 0;
}

static int sampler_open_stream(Sampler *a, int *ret_reader) {
        _cleanup_close_ int reader = -1;
        int fds[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        a->stream = fds[0];
        reader = fds[1];
        /* Nothing is to be sent to us: least of all the reader's own end, which would then never
         * hang up. */
        if (shutdown(a->stream, SHUT_RD) < 0)
                return -errno;
        r = sd_event_add_io(a->service->event, &a->hangup, a->stream, 0, stream_hung_up, a);
        if (r < 0)
                return r;
        *ret_reader = TAKE_FD(reader);
        return 0;
}

static int sampler_enter(Sampler *a, Samplers *all) {
        int r;

        a->entry = (ScheduleEntry){
                .due_usec = a->client->blocked ? SCHEDULE_NEVER : tick_due(&a->tick),
                .number = a->id,
        };
        r = schedule_add(&all->schedule, &a->entry);
        if (r < 0)
                return r;
        if (!tsearch(a, &all->tree, compare_samplers)) {
                schedule_remove(&all->schedule, &a->entry);
                return -ENOMEM;
        }
        a->entered = true;
        sampler_clock_set(all);
        return 0;
}

int sampler_new(Service *s, Peer *peer, const SamplerOptions *o, Sampler **ret, int *ret_stream,
                Refusal *why) {
        _cleanup_(sampler_freep) Sampler *a = calloc(1, sizeof(Sampler));
        _cleanup_close_ int reader = -1;
        int r;

        if (!a)
                return -ENOMEM;
        *a = (Sampler){
                .service = s,
                .tick = { .start_usec = o->start_usec, .interval_usec = o->interval_usec },
                .signal = o->signal,
                .stream = -1,
        };
        r = quota_charge(&s->quota, peer->uid, QUOTA_SAMPLERS, 1, &a->charge, why);
        if (r != 0)
                return r;
        r = client_get(s->samplers, peer, &a->client);
        if (r < 0)
                return r;
        LIST_INSERT_HEAD(&a->client->samplers, a, samplers);
        a->id = serial_next(&s->serial, SERIAL_SAMPLER);
        if (asprintf(&a->path, PERFALLOC_OBJECT_PATH "/sampler/%" PRIu64, a->id) < 0) {
                a->path = NULL;
                return -ENOMEM;
        }
        r = sampler_take_counters(a, o);
        if (r >= 0)
                r = sampler_open_stream(a, &reader);
        if (r >= 0)
                r = sampler_enter(a, s->samplers);
        if (r < 0)
                return r;
        *ret_stream = TAKE_FD(reader);
        *ret = TAKE_PTR(a);
        return 0;
}

void sampler_announce(Sampler *a) {
        a->announced = true;
        (void) sd_bus_emit_object_added(a->service->bus, a->path);
}

static void sampler_leave(Sampler *a, Samplers *all) {
        schedule_remove(&all->schedule, &a->entry);
        sampler_clock_set(all);
        tdelete(a, &all->tree, compare_samplers);
}

Sampler *sampler_free(Sampler *a) {
        Samplers *all;

        if (!a)
                return NULL;
        all = a->service->samplers;
        if (a->announced)
                (void) sd_bus_emit_object_removed(a->service->bus, a->path);
        if (a->entered)
                sampler_leave(a, all);
        if (a->client) {
                LIST_REMOVE(a, samplers);
                client_free_unused(all, a->client);
        }
        sd_event_source_disable_unref(a->hangup);
        close_fd(a->stream);
        for (size_t i = 0; i < a->n_counters; i++)
                sampled_unref(a->counters[i]);
        quota_release(&a->charge);
        free(a->counters);
        free(a->record);
        free(a->path);
        free(a);
        return NULL;
}

/* ---- start and end ---- */

int samplers_init(Service *s) {
        s->samplers = calloc(1, sizeof(Samplers));
        if (!s->samplers)
                return -ENOMEM;
        *s->samplers = (Samplers){ .service = s, .timer = -1 };
        return sampler_clock_init(s->samplers);
}

void samplers_done(Service *s) {
        Samplers *all = s->samplers;

        if (!all)
                return;
        while (!LIST_EMPTY(&all->clients))
                client_free(all, LIST_FIRST(&all->clients));
        schedule_done(&all->schedule);
        sampler_clock_done(all);
        free(all);
        s->samplers = NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampler.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <sys/socket.h>

#include "service/counter/counter.h"
#include "service/sampler/sampler-clock.h"

/* ---- clients ---- */

static SamplerClient *client_find(const Samplers *all, const Peer *peer) {
        SamplerClient *c;

        LIST_FOREACH (c, &all->clients, clients)
                if (c->peer == peer)
                        return c;
        return NULL;
}

int sampler_client_get(Samplers *all, Peer *peer, SamplerClient **ret) {
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

static void client_remove(SamplerClient *c) {
        LIST_REMOVE(c, clients);
        peer_unref(c->peer);
        free(c);
}

static void client_free(Samplers *all, SamplerClient *c) {
        bool was_blocked = c->blocked;

        c->blocked = true; /* it stays while its samplers go */
        while (!LIST_EMPTY(&c->samplers))
                sampler_free(LIST_FIRST(&c->samplers));
        client_remove(c);
        if (was_blocked)
                samplers_save_blocked(all);
        service_touch(all->service);
}

static void client_free_unused(Samplers *all, SamplerClient *c) {
        if (!c->blocked && LIST_EMPTY(&c->samplers))
                client_free(all, c);
}

int samplers_block(Service *s, Peer *peer) {
        SamplerClient *c;
        Sampler *a;
        int r = sampler_client_get(s->samplers, peer, &c);

        if (r < 0)
                return r;
        if (!c->blocked) {
                c->blocked = true;
                samplers_save_blocked(s->samplers);
        }
        LIST_FOREACH (a, &c->samplers, samplers)
                prioq_move(&s->samplers->schedule, &a->entry, TICK_NEVER);
        sampler_clock_set(s->samplers);
        return 0;
}

void samplers_unblock(Service *s, Peer *peer) {
        SamplerClient *c = client_find(s->samplers, peer);
        Sampler *a;

        if (!c)
                return;
        if (c->blocked) {
                c->blocked = false;
                samplers_save_blocked(s->samplers);
        }
        LIST_FOREACH (a, &c->samplers, samplers)
                prioq_move(&s->samplers->schedule, &a->entry, tick_due(&a->tick));
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
        a->counters = calloc(MAX(o->n_counters, 1u), sizeof(ReadingCache *));
        if (!a->counters)
                return -ENOMEM;
        for (; a->n_counters < o->n_counters; a->n_counters++) {
                int r = reading_cache_new(o->counters[a->n_counters], &a->counters[a->n_counters]);

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

int sampler_watch_stream(Sampler *a, int stream) {
        int r = sd_event_add_io(a->service->event, &a->hangup, stream, 0, stream_hung_up, a);

        if (r >= 0)
                a->stream = stream;
        return r;
}

static int sampler_open_stream(Sampler *a, int *ret_reader) {
        _cleanup_close_ int stream = -1, reader = -1;
        int fds[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        stream = fds[0];
        reader = fds[1];
        /* Nothing is to be sent to us: least of all the reader's own end, which would then never
         * hang up. */
        if (shutdown(stream, SHUT_RD) < 0)
                return -errno;
        r = sampler_watch_stream(a, stream);
        if (r < 0)
                return r;
        (void) TAKE_FD(stream);
        *ret_reader = TAKE_FD(reader);
        return 0;
}

int sampler_enter(Sampler *a) {
        Samplers *all = a->service->samplers;

        if (!tsearch(a, &all->tree, compare_samplers))
                return -ENOMEM;
        a->entry = (PrioqNode){
                .key = a->client->blocked ? TICK_NEVER : tick_due(&a->tick),
                .number = a->id,
        };
        prioq_put(&all->schedule, &a->entry);
        a->entered = true;
        sampler_clock_set(all);
        return 0;
}

Sampler *sampler_allocate(Service *s) {
        Sampler *a = calloc(1, sizeof(Sampler));

        if (a)
                *a = (Sampler){ .service = s, .stream = -1 };
        return a;
}

int sampler_give(Sampler *a, SamplerClient *client, uint64_t id) {
        a->client = client;
        LIST_INSERT_HEAD(&client->samplers, a, samplers);
        a->id = id;
        if (asprintf(&a->path, PERFALLOC_OBJECT_PATH "/sampler/%" PRIu64, id) < 0) {
                a->path = NULL;
                return -ENOMEM;
        }
        return 0;
}

int sampler_new(Service *s, Peer *peer, const SamplerOptions *o, Sampler **ret, int *ret_stream,
                Refusal *why) {
        _cleanup_(sampler_freep) Sampler *a = sampler_allocate(s);
        _cleanup_close_ int reader = -1, tally = -1;
        SamplerClient *client;
        int r;

        if (!a)
                return -ENOMEM;
        a->tick = (Tick){ .start_usec = o->start_usec, .interval_usec = o->interval_usec };
        a->signal = o->signal;
        r = quota_charge(&s->quota, peer->uid, QUOTA_SAMPLERS, 1, &a->charge, why);
        if (r != 0)
                return r;
        r = sampler_client_get(s->samplers, peer, &client);
        if (r >= 0)
                r = sampler_give(a, client, serial_next(&s->serial, SERIAL_SAMPLER));
        if (r >= 0)
                r = sampler_take_counters(a, o);
        if (r >= 0)
                r = send_log_new(o->n_counters, &a->tally, &tally);
        if (r >= 0)
                r = sampler_open_stream(a, &reader);
        if (r >= 0)
                r = sampler_enter(a);
        if (r < 0)
                return r;
        sampler_enter_store(a, tally);
        *ret_stream = TAKE_FD(reader);
        *ret = TAKE_PTR(a);
        return 0;
}

void sampler_announce(Sampler *a) {
        a->announced = true;
        (void) sd_bus_emit_object_added(a->service->bus, a->path);
}

static void sampler_leave(Sampler *a, Samplers *all) {
        prioq_remove(&all->schedule, &a->entry);
        sampler_clock_set(all);
        tdelete(a, &all->tree, compare_samplers);
}

/* What is kept of it stays with systemd. */
static void sampler_destroy(Sampler *a) {
        if (a->entered)
                sampler_leave(a, a->service->samplers);
        if (a->client)
                LIST_REMOVE(a, samplers);
        sd_event_source_disable_unref(a->hangup);
        close_fd(a->stream);
        for (size_t i = 0; i < a->n_counters; i++)
                reading_cache_unref(a->counters[i]);
        quota_release(&a->charge);
        send_log_done(&a->tally);
        free(a->counters);
        free(a->path);
        free(a);
}

Sampler *sampler_discard(Sampler *a) {
        Samplers *all;
        SamplerClient *client;

        if (!a)
                return NULL;
        all = a->service->samplers;
        client = a->client;
        store_leave(&a->item);
        sampler_destroy(a);
        if (client)
                client_free_unused(all, client);
        return NULL;
}

Sampler *sampler_free(Sampler *a) {
        if (!a)
                return NULL;
        if (a->announced)
                (void) sd_bus_emit_object_removed(a->service->bus, a->path);
        /* a copy is kept for some time yet: the reader need not wait for its end */
        if (a->stream >= 0)
                (void) shutdown(a->stream, SHUT_WR);
        return sampler_discard(a);
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
        while (!LIST_EMPTY(&all->clients)) {
                SamplerClient *c = LIST_FIRST(&all->clients);

                while (!LIST_EMPTY(&c->samplers))
                        sampler_destroy(LIST_FIRST(&c->samplers));
                client_remove(c);
        }
        sampler_clock_done(all);
        free(all);
        s->samplers = NULL;
}

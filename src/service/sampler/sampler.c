/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sampler.h"

#include <stdio.h>
#include <sys/socket.h>

#include "service/sampler/sampler-clock.h"
#include "service/sampler/sampler-store.h"

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
                context_touch(all->context);
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

        c->blocked = true; /* keeps it while its samplers end */
        while (!LIST_EMPTY(&c->samplers))
                sampler_free(LIST_FIRST(&c->samplers));
        client_remove(c);
        if (was_blocked)
                samplers_save_blocked(all);
        context_touch(all->context);
}

static void client_free_unused(Samplers *all, SamplerClient *c) {
        if (!c->blocked && LIST_EMPTY(&c->samplers))
                client_free(all, c);
}

int samplers_block(Samplers *all, Peer *peer) {
        SamplerClient *c;
        Sampler *a;
        int r = sampler_client_get(all, peer, &c);

        if (r < 0)
                return r;
        if (!c->blocked) {
                c->blocked = true;
                samplers_save_blocked(all);
        }
        LIST_FOREACH (a, &c->samplers, samplers)
                prioq_move(&all->schedule, &a->entry, TICK_NEVER);
        sampler_clock_set(all);
        return 0;
}

void samplers_unblock(Samplers *all, Peer *peer) {
        SamplerClient *c = client_find(all, peer);
        Sampler *a;

        if (!c)
                return;
        if (c->blocked) {
                c->blocked = false;
                samplers_save_blocked(all);
        }
        LIST_FOREACH (a, &c->samplers, samplers)
                prioq_move(&all->schedule, &a->entry, tick_due(&a->tick));
        sampler_clock_set(all);
        client_free_unused(all, c);
}

bool samplers_any(const Samplers *all, const Peer *peer) {
        const SamplerClient *c = client_find(all, peer);

        return c && !LIST_EMPTY(&c->samplers);
}

void samplers_forget_peer(Samplers *all, const Peer *peer) {
        SamplerClient *c = client_find(all, peer);

        if (c)
                client_free(all, c);
}

bool samplers_are_idle(const Samplers *all) {
        return LIST_EMPTY(&all->clients);
}

/* ---- samplers ---- */

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

/* The client end is closed, or shut down for reading. */
static int stream_hung_up(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        sampler_free(userdata);
        return 0;
}

int sampler_watch_stream(Sampler *a, int stream) {
        int r = sd_event_add_io(a->all->context->event, &a->hangup, stream, 0, stream_hung_up, a);

        if (r >= 0)
                a->stream = stream;
        return r;
}

static int sampler_open_stream(Sampler *a, int *ret_client_end) {
        _cleanup_close_ int stream = -1, client_end = -1;
        int fds[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        stream = fds[0];
        client_end = fds[1];
        /* Nothing may be sent to us. If the client sent its own end over the stream, that would
         * never hang up. */
        if (shutdown(stream, SHUT_RD) < 0)
                return -errno;
        r = sampler_watch_stream(a, stream);
        if (r < 0)
                return r;
        (void) TAKE_FD(stream);
        *ret_client_end = TAKE_FD(client_end);
        return 0;
}

int sampler_enter(Sampler *a, uint64_t id) {
        Samplers *all = a->all;
        int r = object_enter(&a->object, &all->objects, id);

        if (r < 0)
                return r;
        a->entry = (PrioqNode){
                .key = a->client->blocked ? TICK_NEVER : tick_due(&a->tick),
                .number = id,
        };
        prioq_put(&all->schedule, &a->entry);
        a->entered = true;
        sampler_clock_set(all);
        return 0;
}

Sampler *sampler_allocate(Samplers *all) {
        Sampler *a = calloc(1, sizeof(Sampler));

        if (a)
                *a = (Sampler){ .all = all, .stream = -1, .unkept_log = -1 };
        return a;
}

void sampler_set_client(Sampler *a, SamplerClient *client) {
        a->client = client;
        LIST_INSERT_HEAD(&client->samplers, a, samplers);
        a->object.uid = client->peer->uid;
}

int sampler_new(Samplers *all, Peer *peer, const SamplerOptions *o, Sampler **ret, int *ret_stream,
                Refusal *why) {
        _cleanup_(sampler_freep) Sampler *a = sampler_allocate(all);
        _cleanup_close_ int client_end = -1, send_log = -1;
        SamplerClient *client;
        int r;

        if (!a)
                return -ENOMEM;
        a->tick = (Tick){ .start_usec = o->start_usec, .interval_usec = o->interval_usec };
        a->signal = o->signal;
        a->tagged = o->tagged;
        a->mapped = o->map;
        r = quota_charge(&all->context->quota, peer->uid, QUOTA_SAMPLERS, 1, &a->charge, why);
        if (r != 0)
                return r;
        r = sampler_client_get(all, peer, &client);
        if (r >= 0)
                sampler_set_client(a, client);
        if (r >= 0)
                r = sampler_take_counters(a, o);
        if (r >= 0)
                r = send_log_new(o->n_counters, o->tagged ? &o->tag : NULL, &a->send_log,
                                 &send_log);
        if (r >= 0)
                r = o->map ? mapping_new(a->send_log.record, a->send_log.record_size, &a->mapping,
                                         &a->stream, &client_end)
                           : sampler_open_stream(a, &client_end);
        if (r >= 0)
                r = sampler_enter(a, serial_next(&all->context->serial, SERIAL_SAMPLER));
        if (r < 0)
                return r;
        sampler_enter_store(a, TAKE_FD(send_log));
        *ret_stream = TAKE_FD(client_end);
        *ret = TAKE_PTR(a);
        return 0;
}

void sampler_announce(Sampler *a) {
        a->announced = true;
        object_signal_added(&a->object, &a->all->objects, a->all->context->bus);
}

static void sampler_leave(Sampler *a, Samplers *all) {
        prioq_remove(&all->schedule, &a->entry);
        sampler_clock_set(all);
}

/* Frees it. The store keeps its record and descriptors. */
static void sampler_destroy(Sampler *a) {
        if (a->entered)
                sampler_leave(a, a->all);
        if (a->client)
                LIST_REMOVE(a, samplers);
        object_leave(&a->object, &a->all->objects);
        sd_event_source_disable_unref(a->hangup);
        close_fd(a->stream);
        for (size_t i = 0; i < a->n_counters; i++)
                reading_cache_unref(a->counters[i]);
        quota_release(&a->charge);
        mapping_done(&a->mapping);
        send_log_done(&a->send_log);
        close_fd(a->unkept_log);
        free(a->counters);
        free(a);
}

Sampler *sampler_discard(Sampler *a) {
        Samplers *all;
        SamplerClient *client;

        if (!a)
                return NULL;
        all = a->all;
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
                object_signal_removed(&a->object, &a->all->objects, a->all->context->bus);
        mapping_end(&a->mapping);
        /* the store keeps a copy for some time: tell the client now */
        if (a->stream >= 0 && !a->mapped)
                (void) shutdown(a->stream, SHUT_WR);
        return sampler_discard(a);
}

/* ---- start and end ---- */

static void sampler_hung_up(Sampler *a) {
        sampler_free(a);
}

int samplers_init(Samplers *all, Context *context, Counters *counters) {
        all->context = context;
        all->counters = counters;
        all->timer = -1;
        all->hung_up = sampler_hung_up;
        LIST_INIT(&all->clients);
        return sampler_clock_init(all);
}

void samplers_done(Samplers *all) {
        if (!all->context)
                return;
        while (!LIST_EMPTY(&all->clients)) {
                SamplerClient *c = LIST_FIRST(&all->clients);

                while (!LIST_EMPTY(&c->samplers))
                        sampler_destroy(LIST_FIRST(&c->samplers));
                client_remove(c);
        }
        sampler_clock_done(all);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Periodic reads: the sampler objects on the bus, /org/perfalloc1/sampler/N.
 *
 * A sampler belongs to the connection that made it, its client, and ends with that or with the
 * reader of its stream. One timer drives them all (Samplers): whoever is due at an instant is read
 * at that instant. The way of a tick allocates nothing, sends one record, and has no D-Bus in it
 * unless the client asked for signals.
 *
 * Late slots are skipped and counted (core/tick.h), so samplers never owe work. They get half of
 * the loop's time at most, in slices, whatever their number: those that this makes late miss ticks.
 */

#include <perfalloc/sample.h>
#include <sys/queue.h>

#include "core/prioq.h"
#include "core/tick.h"
#include "service/daemon/service.h"
#include "service/sampler/reading-cache.h"
#include "service/sampler/send-log.h"
#include "service/store/store.h"
#include "service/util/rate-limit.h"

typedef struct Sampler Sampler;
typedef struct SamplerClient SamplerClient;
typedef struct SamplerOptions SamplerOptions;

#define SAMPLERS_SLICE_USEC (2 * USEC_PER_MSEC) /* then the loop looks at other things */

/* A connection that has samplers or has blocked those that it may make. There are not more than
 * connections, of which the bus allows each user some: nothing else is charged for it. */
struct SamplerClient {
        Peer *peer;
        bool blocked;
        LIST_HEAD(, Sampler) samplers;
        LIST_ENTRY(SamplerClient) clients;
};

struct Samplers {
        Service *service;
        void *tree; /* of Sampler by id */
        LIST_HEAD(, SamplerClient) clients;
        Prioq schedule; /* of those that tick, by the time of the next tick */
        int timer;      /* timerfd, CLOCK_BOOTTIME */
        sd_event_source *source;
        uint64_t armed_usec;      /* what the timer is set to, TICK_NEVER when it is not */
        uint64_t not_before_usec; /* when it may go off again */
        uint64_t instant;         /* of the last reading, a number */
        StoreItem blocked;        /* while any client is */
        Allowances signals;       /* bytes of them, by user */
};

struct Sampler {
        uint64_t id;
        char *path;
        Service *service;
        SamplerClient *client;
        QuotaCharge charge;
        bool entered;   /* in the schedule and the tree */
        bool announced; /* InterfacesAdded was sent */

        Tick tick;
        bool signal;
        TickCount streamed, signalled;
        PrioqNode entry;

        int stream; /* our end: for sending alone */
        sd_event_source *hangup;

        size_t n_counters;
        ReadingCache **counters;
        SendLog tally; /* with the last record */
        StoreItem item;
        LIST_ENTRY(Sampler) samplers; /* of its client */
};

struct SamplerOptions {
        uint64_t interval_usec;
        uint64_t start_usec; /* CLOCK_BOOTTIME */
        bool signal;
        Counter *const *counters; /* all different */
        size_t n_counters;        /* at most PERFALLOC_READINGS_MAX */
};

/* ret_stream is the reader's end, for the caller to hand out and close. Refusals are those of
 * quota_charge(). The sampler is not announced yet. */
int sampler_new(Service *s, Peer *peer, const SamplerOptions *options, Sampler **ret,
                int *ret_stream, Refusal *why);
Sampler *sampler_free(Sampler *a);
DEFINE_CLEANUP(Sampler *, sampler_free)

Sampler *sampler_find(Service *s, uint64_t id);

/* InterfacesAdded; from now on its end is told too. */
void sampler_announce(Sampler *a);

/* What the peer's samplers do is put off, also of those that it makes later; then it goes on. */
int samplers_block(Service *s, Peer *peer);
void samplers_unblock(Service *s, Peer *peer);
bool samplers_any(const Service *s, const Peer *peer);

/* The peer has left: its samplers go. */
void samplers_forget_peer(Service *s, const Peer *peer);

/* The peer may read these counters no more: its samplers that do so go. */
void samplers_forget_reader(Service *s, const Peer *peer, const struct CounterSet *set);
bool samplers_are_idle(const Service *s);

int samplers_init(Service *s);
int sampler_bus_register(Service *s);

/* For the end of the service: nobody is told. */
void samplers_done(Service *s);

/* ---- across restarts (sampler-store.c) ---- */

/* From now on it is kept; at a tick, its tally is all that changes. */
void sampler_enter_store(Sampler *a, int tally);
void samplers_save_blocked(Samplers *all);

/* Clients and samplers of an earlier run, when the counters are there. Their grids go on; what was
 * missed in between the next record tells. -ENOMEM. */
int samplers_restore(Service *s);

/* ---- from sampler.c ---- */

int sampler_client_get(Samplers *all, Peer *peer, SamplerClient **ret);
Sampler *sampler_allocate(Service *s);
int sampler_give(Sampler *a, SamplerClient *client, uint64_t id);
int sampler_watch_stream(Sampler *a, int stream); /* takes it over on success */
int sampler_enter(Sampler *a);                    /* from now on it ticks */
Sampler *sampler_discard(Sampler *a);             /* sampler_free(), but nobody is told */
DEFINE_CLEANUP(Sampler *, sampler_discard)

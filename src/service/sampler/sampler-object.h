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
#include "service/bus/object.h"
#include "service/sampler/reading-cache.h"
#include "service/sampler/send-log.h"
#include "service/store/store.h"
#include "service/util/context.h"
#include "service/util/rate-limit.h"

typedef struct Sampler Sampler;
typedef struct SamplerClient SamplerClient;
typedef struct Samplers Samplers;

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
        Context *context;
        Counters *counters;
        Objects objects;
        LIST_HEAD(, SamplerClient) clients;
        Prioq schedule;              /* by when they are due */
        void (*hung_up)(Sampler *a); /* nobody reads its stream any more */
        int timer;                   /* timerfd, CLOCK_BOOTTIME */
        sd_event_source *source;
        uint64_t armed_usec;      /* what the timer is set to, TICK_NEVER when it is not */
        uint64_t not_before_usec; /* when it may go off again */
        uint64_t instant;         /* of the last reading, a number */
        StoreItem blocked;        /* while any client is */
        RateLimit signals;        /* bytes of them, by uid */
};

struct Sampler {
        Object object;
        Samplers *all;
        SamplerClient *client;
        QuotaCharge charge;
        bool entered;   /* in the schedule */
        bool announced; /* InterfacesAdded was sent */

        Tick tick;
        bool signal;
        TickCount streamed, signalled;
        PrioqNode entry;

        int stream; /* our end: for sending alone */
        sd_event_source *hangup;

        size_t n_counters;
        ReadingCache **counters;
        SendLog send_log; /* with the last record */
        StoreItem item;
        LIST_ENTRY(Sampler) samplers; /* of its client */
};

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Samplers as objects, /org/perfalloc1/sampler/N: periodic reads of counters.
 *
 * A sampler belongs to the connection that created it, its client. It ends with that connection,
 * and when the client's end of its stream is closed. In place of a stream it may have a mapping,
 * which nobody can see being closed. One timer drives all samplers (Samplers): all
 * that are due at an instant are read at that instant. A tick allocates nothing, sends one record,
 * and does not use D-Bus unless the client asked for signals.
 *
 * Late slots are skipped and counted (core/tick.h), so samplers never fall behind with work. They
 * get half of the loop's time at most, in slices, whatever their number: samplers that this delays
 * miss ticks.
 */

#include <perfalloc/sample.h>
#include <sys/queue.h>

#include "core/prioq.h"
#include "core/tick.h"
#include "service/bus/object.h"
#include "service/sampler/mapping.h"
#include "service/sampler/reading-cache.h"
#include "service/sampler/send-log.h"
#include "service/store/store.h"
#include "service/util/context.h"
#include "service/util/rate-limit.h"

typedef struct Sampler Sampler;
typedef struct SamplerClient SamplerClient;
typedef struct Samplers Samplers;

#define SAMPLERS_SLICE_USEC (2 * USEC_PER_MSEC) /* then the loop handles other events */

/* A connection with samplers, or one that has called BlockSamplers. Each user's connections are
 * limited by the bus, so nothing else is charged for it. */
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
        void (*hung_up)(Sampler *a); /* the client end of its stream is closed */
        int timer;                   /* timerfd, CLOCK_BOOTTIME */
        sd_event_source *source;
        uint64_t armed_usec;      /* when it expires; TICK_NEVER: it is not set */
        uint64_t not_before_usec; /* when it may expire again */
        StoreItem blocked;        /* stored while any client is blocked */
        RateLimit signals;        /* bytes of signals, by uid */
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
        bool tagged; /* the records end with the client's tag */
        TickCount streamed, signalled;
        PrioqNode entry;

        int stream;      /* the service's end: for sending only; or the file of the mapping */
        bool mapped;     /* it has a mapping and no stream */
        Mapping mapping; /* of the send log's record */
        sd_event_source *hangup;

        size_t n_counters;
        ReadingCache **counters;
        SendLog send_log; /* with the last record */
        int unkept_log;   /* its descriptor, until that is stored */
        StoreItem item;
        LIST_ENTRY(Sampler) samplers; /* of its client */
};

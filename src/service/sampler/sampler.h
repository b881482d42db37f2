/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Samplers from CreateSampler to their end.
 */

#include "service/sampler/sampler-object.h"

typedef struct SamplerOptions SamplerOptions;

struct SamplerOptions {
        uint64_t interval_usec;
        uint64_t start_usec; /* CLOCK_BOOTTIME */
        bool signal;
        Counter *const *counters; /* all different */
        size_t n_counters;        /* at most PERFALLOC_READINGS_MAX */
};

/* ret_stream is the reader's end, for the caller to hand out and close. Refusals are those of
 * quota_charge(). The sampler is not announced yet. */
int sampler_new(Samplers *all, Peer *peer, const SamplerOptions *options, Sampler **ret,
                int *ret_stream, Refusal *why);
Sampler *sampler_free(Sampler *a);
DEFINE_CLEANUP(Sampler *, sampler_free)

/* InterfacesAdded; from now on its end is told too. */
void sampler_announce(Sampler *a);

/* What the peer's samplers do is put off, also of those that it makes later; then it goes on. */
int samplers_block(Samplers *all, Peer *peer);
void samplers_unblock(Samplers *all, Peer *peer);
bool samplers_any(const Samplers *all, const Peer *peer);

/* The peer has left: its samplers go. */
void samplers_forget_peer(Samplers *all, const Peer *peer);

bool samplers_are_idle(const Samplers *all);

int samplers_init(Samplers *all, Context *context, Counters *counters);

/* For the end of the service: nobody is told. */
void samplers_done(Samplers *all);

/* ---- for sampler-restore.c ---- */

int sampler_client_get(Samplers *all, Peer *peer, SamplerClient **ret);
Sampler *sampler_allocate(Samplers *all);
void sampler_give(Sampler *a, SamplerClient *client);
int sampler_watch_stream(Sampler *a, int stream); /* takes it over on success */
int sampler_enter(Sampler *a, uint64_t id);       /* from now on it ticks */
Sampler *sampler_discard(Sampler *a);             /* sampler_free(), but nobody is told */
DEFINE_CLEANUP(Sampler *, sampler_discard)

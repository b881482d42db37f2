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
        int signal;          /* boolean: also send Sample */
        int map;             /* boolean: a mapping and no stream */
        uint64_t tag;
        bool tagged;
        Counter *counters[PERFALLOC_READINGS_MAX]; /* all different */
        size_t n_counters;
};

/* ret_stream is the client's end or mapping, for the caller to send and close. Refusals are those
 * of quota_charge(). The sampler is not announced yet. */
int sampler_new(Samplers *all, Peer *peer, const SamplerOptions *options, Sampler **ret,
                int *ret_stream, Refusal *why);
Sampler *sampler_free(Sampler *a);
DEFINE_CLEANUP(Sampler *, sampler_free)

/* Sends InterfacesAdded. From now on its end is signalled too. */
void sampler_announce(Sampler *a);

/* Blocks the peer's samplers, also those that it creates later; unblocks them. */
int samplers_block(Samplers *all, Peer *peer);
void samplers_unblock(Samplers *all, Peer *peer);
bool samplers_any(const Samplers *all, const Peer *peer);

/* The peer has left: its samplers end. */
void samplers_forget_peer(Samplers *all, const Peer *peer);

bool samplers_are_idle(const Samplers *all);

int samplers_init(Samplers *all, Context *context, Counters *counters);

/* For the end of the service: sends no signals. */
void samplers_done(Samplers *all);

/* ---- for sampler-restore.c ---- */

int sampler_client_get(Samplers *all, Peer *peer, SamplerClient **ret);
Sampler *sampler_allocate(Samplers *all);
void sampler_set_client(Sampler *a, SamplerClient *client);
int sampler_watch_stream(Sampler *a, int stream); /* takes it over on success */
int sampler_enter(Sampler *a, uint64_t id);       /* from now on it ticks */
Sampler *sampler_discard(Sampler *a);             /* sampler_free() without signals */
DEFINE_CLEANUP(Sampler *, sampler_discard)

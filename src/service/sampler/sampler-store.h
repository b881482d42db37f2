/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Samplers as they are kept for the next run of the service.
 */

#include "service/sampler/sampler-object.h"

/* The descriptors that are kept of a sampler, in this order: never renumber. */
enum {
        SAMPLER_FD_STREAM = 0,
        SAMPLER_FD_SEND_LOG = 1,
        _SAMPLER_FD_MAX,
};

/* From now on it is kept; at a tick, its send log is all that changes. */
void sampler_enter_store(Sampler *a, int send_log);
void samplers_save_blocked(Samplers *all);

/* Its own fields, without the client and the counters. */
int sampler_unpack(Sampler *a, const Unpack *u);

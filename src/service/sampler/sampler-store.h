/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stores samplers for the next run of the service.
 */

#include "service/sampler/sampler-object.h"

/* Indexes of a sampler's stored descriptors. Written to the store: never renumber. */
enum {
        SAMPLER_FD_STREAM = 0, /* or the mapping */
        SAMPLER_FD_SEND_LOG = 1,
        _SAMPLER_FD_MAX,
};

/* Stores it from now on, and takes the send log over. A tick changes its send log only. */
void sampler_enter_store(Sampler *a, int send_log);
void samplers_save_blocked(Samplers *all);

/* Reads its own fields, without the client and the counters. */
int sampler_unpack(Sampler *a, const Unpack *u);

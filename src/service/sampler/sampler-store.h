/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Samplers as they are kept for the next run of the service.
 */

#include "service/sampler/sampler-object.h"

/* From now on it is kept; at a tick, its send log is all that changes. */
void sampler_enter_store(Sampler *a, int send_log);
void samplers_save_blocked(Samplers *all);

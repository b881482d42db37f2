/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Why libpfm4 did not know an event, in words: which part failed, and what is near to it.
 */

#include "perf/event/pfm.h"

/* error is what pfm_encode() said. NO_SUCH_EVENT, INVALID_EVENT, -ENOMEM. */
int pfm_explain(const Pfm *pfm, const char *string, int error, Refusal *why);

/* Tries a string; PFM_SUCCESS or a PFM_ERR_*. */
int pfm_encode(const Pfm *pfm, const char *string);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Why libpfm4 rejected an event: which part failed, and which names are similar.
 */

#include "perf/event/pfm.h"

/* error is what pfm_encode() returned. NO_SUCH_EVENT, INVALID_EVENT, -ENOMEM. */
int pfm_explain(const Pfm *pfm, const char *string, int error, Refusal *why);

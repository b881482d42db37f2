/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The counter sets that an AttachJob attaches a process to. Sets that are started count it from
 * when it is accepted.
 */

#include "service/counter/attach-job.h"
#include "service/counter/counter-object.h"

typedef struct AttachSets AttachSets;

/* What the job's what points to; borrowed. */
struct AttachSets {
        CounterSet **sets;
        size_t n_sets;
};

/* Whether descendants can be attached: REFUSAL_INVALID_ARGS, as pinned events are not inherited.
 * What is pinned because its user holds the counters is not pinned any more when its first process
 * is attached with descendants. */
int attach_sets_check_descendants(const CounterSet *set, Refusal *why);

/* Refusals beside those of attach_job_open(): those of perf_event_open(2) and quota_resize(), and
 *
 * - REFUSAL_ALREADY_ATTACHED: the target is attached, or a descendant of it, or a process that it
 *   descends from.
 * - REFUSAL_BUSY: another user has an exclusive hold. */
extern const AttachKind attach_sets_kind;

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The processes of a counter set.
 */

#include "service/counter/counter-object.h"

/* Adds tids, of the target and its descendants (pids, see group_attach()). The caller opens them
 * (counter_sets_open()). They count from counter_set_accept() on. Refusals are those of
 * quota_resize(), and change nothing. */
int counter_set_attach(CounterSet *set, const GroupTarget *target, const pid_t *tids,
                       const pid_t *pids, size_t n_tids, Refusal *why);
void counter_set_accept(CounterSet *set, size_t target);
void counter_set_detach(CounterSet *set, size_t target);

/* Looks at n targets, others each time, and releases what those that have ended still take. */
void counter_set_reap(CounterSet *set, size_t n);

/* Targets that were reopened after a yield may have become processes that the user may not trace.
 * They count again after an inspection, or are detached. */
void counter_set_guard(CounterSet *set);

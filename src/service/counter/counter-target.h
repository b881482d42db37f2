/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The processes of a counter set.
 */

#include "service/counter/counter-object.h"

/* Adds tids, of the target and its descendants, which the caller opens (counter_sets_open()); they
 * do not count before counter_set_accept(). Refusals are those of quota_resize(); then all is as
 * before. */
int counter_set_attach(CounterSet *set, const GroupTarget *target, const pid_t *tids, size_t n_tids,
                       Refusal *why);
void counter_set_accept(CounterSet *set, size_t target);
void counter_set_detach(CounterSet *set, size_t target);

/* Gives back what targets that have ended still take. */
void counter_set_reap(CounterSet *set);

/* Targets that were opened anew, after a yield, may have become what their user may not trace. They
 * count again once they were inspected, or are detached. */
void counter_set_guard(CounterSet *set);

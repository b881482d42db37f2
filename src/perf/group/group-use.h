/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which counters a group takes where it counts.
 */

#include "core/scope.h"
#include "perf/group/group.h"

/* By the parts of the scope: what the events take that the part's PMU counts. The caller frees it.
 * An event that cannot be tried now is taken for one that takes a general counter. -ENOMEM. */
int group_uses(const Group *g, const Scope *scope, CounterUse **ret);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which counters a group takes where it counts.
 */

#include "perf/group/group.h"

/* An event that cannot be tried now is taken for one that takes a general counter. */
CounterUse group_use(const Group *g);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Groups that yield and resume.
 */

#include "perf/group/group.h"

/* After a yield nothing of the group is on the PMU. A resume that fails leaves the group closed,
 * with error set; it can be tried again. If the yield closed descriptors, the targets' threads are
 * listed again: new ones are counted from then on, and ended ones, whose numbers may be reused, are
 * left out. */
void group_yield(Group *g);
int group_resume(Group *g, Refusal *why);

/* After an error: opens (and starts) what should be open and is not. */
int group_mend(Group *g, Refusal *why);

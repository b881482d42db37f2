/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What stands behind an event's name and says where it counts, in perf's letters (perf-list(1)): u
 * user, k kernel, h hypervisor, G guests, H the host, I not while idle, p, pp, ppp precise.
 */

#include <linux/perf_event.h>

#include "core/refusal.h"

/* All letters may stand together ("uk") or in parts, as libpfm4 has them ("u:k"). With none of u, k
 * and h all is counted. Returns false, and changes nothing, when anything else is among them. */
bool modifiers_apply(const char *letters, struct perf_event_attr *attr);

/* The same for a string that has to be valid: INVALID_EVENT. */
int modifiers_parse(const char *event, const char *letters, struct perf_event_attr *attr,
                    Refusal *why);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Event modifiers, perf's letters behind an event's name (perf-list(1)): u user, k kernel, h
 * hypervisor, G guests, H the host, I not while idle, p, pp, ppp precise.
 */

#include <linux/perf_event.h>

#include "core/refusal.h"

/* Letters may be joined ("uk") or, as in libpfm4, separated ("u:k"). Without u, k and h all three
 * are counted. False, and attr is unchanged: there is something else among them. */
bool modifiers_apply(const char *letters, struct perf_event_attr *attr);

/* The same, but what is wrong is refused: INVALID_EVENT. */
int modifiers_parse(const char *event, const char *letters, struct perf_event_attr *attr,
                    Refusal *why);

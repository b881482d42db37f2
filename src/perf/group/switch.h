/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Starting and stopping events. On a machine with many CPUs that is done side by side
 * (core/team.h), as an event of another CPU takes an interrupt there.
 */

#include "core/team.h"

/* Who does it; NULL, as at first: this thread, at once. */
void switches_set_team(Team *t);

/* PERF_EVENT_IOC_ENABLE or DISABLE of an event, at once. While switches are gathered it is made
 * when they are settled or flushed, in any order: so an event is switched only once until then. */
void switch_event(int fd, unsigned long request);

/* What is switched between them may be switched at once, when the outermost is settled. */
void switches_gather(void);
void switches_settle(void);

/* Switches what has been gathered so far: before a descriptor of it is closed. */
void switches_flush(void);

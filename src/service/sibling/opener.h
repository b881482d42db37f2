/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The sibling process that opens events, so that the process which parses the bus has neither
 * CAP_PERFMON nor CAP_SYS_ADMIN.
 *
 * It is forked before the capabilities are dropped and lives as long as the service. From
 * opener_fork() on, perf_open_all() asks it and waits for the answer: opening takes microseconds.
 * Each request says what was authorized, and the opener checks every attr against the allow-list
 * (core/attr-rules.h) once more; what can never be authorized it refuses with EPERM. A thread that
 * has a lane of its own (perf-open.h) is served by a thread of the opener.
 *
 * Without the opener nothing can be opened, and the service cannot fork another one. When it is
 * found dead, or does not answer within OPENER_BOUND_USEC, in the middle of an opening, the process
 * ends at once, as if it were killed: what is told or written down of a failure would be wrong. It
 * is started anew and goes on with what is stored.
 */

#include <systemd/sd-event.h>

#include "core/util.h"

typedef struct Opener Opener;

#define OPENER_BOUND_USEC (6 * USEC_PER_SEC)

/* Forks the opener. Call it before any thread, bus or event loop exists. */
int opener_fork(Opener **ret);

/* died is called once if the opener goes away while nobody waits for it. */
int opener_attach_event(Opener *opener, sd_event *event, void (*died)(void *userdata),
                        void *userdata);

/* Ends the opener; from then on this process opens events itself. NULL is fine. */
Opener *opener_free(Opener *opener);
DEFINE_CLEANUP(Opener *, opener_free)

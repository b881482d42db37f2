/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PCP's own perfalloc(1), which does not know this service. A process that has its lock, and may
 * org.perfalloc1.hold, gets a shared hold of all core PMUs, for as long as it has the lock. So
 * monitors yield to it too, and others see who has the counters. For a process that may not, PCP
 * alone stops.
 *
 * Locks are not reported. But the file has to be opened before and closed after, and inotify(7)
 * reports that. The lock is checked then, and some more times shortly afterwards, because it comes
 * after the open. Nothing runs while nobody touches the file.
 */

#include "core/pack.h"
#include "service/hold/hold-object.h"
#include "yield/bridge.h"

typedef struct PcpPerfalloc PcpPerfalloc;

/* lock is a bridge of pcp_lock_new() for path, and must outlive this. past is what
 * pcp_perfalloc_pack() wrote in an earlier run, or NULL. changed is called when what is to be
 * stored has changed. */
int pcp_perfalloc_new(Holds *holds, Bridge *lock, const char *path, void (*changed)(void *userdata),
                      void *userdata, const Unpack *past, PcpPerfalloc **ret);

/* Ends its hold, if there is one. Returns NULL. */
PcpPerfalloc *pcp_perfalloc_free(PcpPerfalloc *p);

/* Frees the memory only, at the end of the service: the hold goes on. */
void pcp_perfalloc_drop(PcpPerfalloc *p);

/* Whether there is a process that has to be known after a restart. p may be NULL: there is none. */
bool pcp_perfalloc_is_kept(const PcpPerfalloc *p);
void pcp_perfalloc_pack(const PcpPerfalloc *p, Pack *pack);

/* The process asks for a hold of its own (perfalloc -f FILE): no other hold is taken for its
 * lock. */
void pcp_perfalloc_forget(PcpPerfalloc *p, pid_t pid);

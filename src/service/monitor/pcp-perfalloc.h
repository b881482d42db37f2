/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PCP's own perfalloc(1), which knows nothing of this service: whoever has its lock, and is allowed
 * org.perfalloc1.hold, gets a shared hold of all core PMUs for as long as they have it. So monitors
 * give way to them too, and others see who has the counters. Who is not allowed stops PCP alone.
 *
 * Nobody tells when a lock is taken. But the file has to be opened first and closed at last, and of
 * that inotify(7) tells: it is looked at then, and some more times shortly afterwards, for the lock
 * comes after the opening. Nothing is done while nobody touches it.
 */

#include "core/pack.h"
#include "service/hold/hold-object.h"
#include "yield/bridge.h"

typedef struct PcpPerfalloc PcpPerfalloc;

/* lock is a bridge of pcp_lock_new() for path, and must outlive this. past: what
 * pcp_perfalloc_pack() has written in an earlier run; NULL: nothing. changed is called when what is
 * to be kept has changed. */
int pcp_perfalloc_new(Holds *holds, Bridge *lock, const char *path, void (*changed)(void *userdata),
                      void *userdata, const Unpack *past, PcpPerfalloc **ret);

/* Ends the hold that there may be. Returns NULL. */
PcpPerfalloc *pcp_perfalloc_free(PcpPerfalloc *p);

/* Frees it alone, at the end of the service: the hold goes on. */
void pcp_perfalloc_drop(PcpPerfalloc *p);

/* Whether there is somebody, who has to be known after a restart. NULL: no. */
bool pcp_perfalloc_is_kept(const PcpPerfalloc *p);
void pcp_perfalloc_pack(const PcpPerfalloc *p, Pack *pack);

/* This process asks for a hold of its own (perfalloc -f FILE): the lock is no reason for another
 * one. */
void pcp_perfalloc_forget(PcpPerfalloc *p, pid_t pid);

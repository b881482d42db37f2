/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The events that the kernel itself names (perf_event_open(2): PERF_TYPE_HARDWARE, HW_CACHE and
 * SOFTWARE), in perf's spelling. libpfm4 knows most of them too, but its tables cost a megabyte of
 * private memory: who counts nothing else does without.
 */

#include "perf/event/event.h"

/* "NAME" or "NAME:MODIFIERS", any case. Returns false, and changes nothing, when it is something
 * else. */
bool generic_event_parse(const char *string, struct perf_event_attr *attr);

/* Whether the part before the first colon is such a name, whatever follows. */
bool generic_event_is_name(const char *string);

/* Calls f for each name, with its type and config; f returns non-zero to stop, and that value is
 * returned. */
typedef int (*GenericEventVisitor)(void *userdata, const char *name, uint32_t type, uint64_t config,
                                   const char *description);
int generic_event_visit(GenericEventVisitor f, void *userdata);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The kernel's generic events (perf_event_open(2): PERF_TYPE_HARDWARE, HW_CACHE and SOFTWARE), in
 * perf's spelling. libpfm4 knows most of them too, but its tables take a megabyte of private
 * memory.
 */

#include <linux/perf_event.h>

#include "core/util.h"

/* "NAME" or "NAME:MODIFIERS", any case. False, and attr is unchanged: it is something else. */
bool generic_event_parse(const char *string, struct perf_event_attr *attr);

/* Whether the part before the first colon is such a name, whatever follows. */
bool generic_event_is_name(const char *string);

/* The first of the names of an event; false: it is no generic one. */
bool generic_event_name(uint32_t type, uint64_t config, char *ret, size_t size);

/* Calls f for each name, with its type and config; a non-zero return of f ends the walk and is
 * returned. */
typedef int (*GenericEventVisitor)(void *userdata, const char *name, uint32_t type, uint64_t config,
                                   const char *description);
int generic_event_visit(GenericEventVisitor f, void *userdata);

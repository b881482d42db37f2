/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Strings that name several events, separated by commas: "cycles,cpu/event=0x3c,umask=0/". Commas
 * between the slashes of a PMU's event belong to the event.
 */

#include "core/util.h"

/* "mem:ADDR/LEN:rw", whose slash is no beginning of terms. */
#define BREAKPOINT_EVENT_PREFIX "mem:"

/* The next event, cut out of *list, which is NULL at the end. An empty one is returned too. */
char *event_list_next(char **list);

/* How many events a list has: one at least. */
size_t event_list_count(const char *list);

/* The single events of several lists, in order; the caller frees them. Both arrays are
 * NULL-terminated. -ENOMEM. */
int event_list_split(char *const *lists, char ***ret);
char **event_list_free(char **events);
DEFINE_CLEANUP(char **, event_list_free)

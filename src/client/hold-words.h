/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The text about a hold, an object of org.perfalloc1.Hold (org.perfalloc1(5)).
 *
 * The caller frees a text; NULL: no memory.
 */

#include "client/object.h"

/* Whether a is in b's way, or ahead of it in the queue, as far as properties tell: it came earlier,
 * has not ended, and has a PMU and a CPU in common with it. */
bool hold_precedes(const Object *a, const Object *b);

#define HOLD_WORDS_EMPTY                                                                           \
        "this machine has no core PMU, so there is nothing to hold (--pmu=NAME holds other PMUs)"

/* Whether a hold that was read has nothing in its scope. */
bool hold_is_empty(const Object *o);

#define COMMAND_NAME_MAX 64

/* The name of the holder's process, of this machine; "" if it is gone or hidden. Returns ret. */
const char *hold_words_command(const Object *o, char ret[static COMMAND_NAME_MAX]);

/* "all counters of cpu on CPUs 0-3" */
char *hold_words_scope(const Object *o);

/* "alice, make (pid 4711): all counters of cpu on CPUs 0-3, exclusive, granted since 14:30:02,
 * 'test'". command: the name of the process; "": it is not known. */
char *hold_words_holder(const Object *o, const char *command);

/* "14:30:02", or with the date if that is another day than now. */
#define HOLD_TIME_MAX 32
const char *hold_words_time(uint64_t usec, char ret[static HOLD_TIME_MAX]);

/* The obstacles; "" for none. */
char *hold_words_obstacles(const Object *o);

/* What the kernel keeps of a PMU, by the properties Kernel and Fixed of that. NULL also: nothing.
 */
char *hold_words_kernel(const char *pmu, char *const *kernel, char *const *fixed);

/* The message about a granted hold: what it has, and whether the counters were measured to be free.
 * An object without a State is one that could not be read. */
char *hold_words_grant(const Object *o, bool confirmed, uint64_t latency_usec);

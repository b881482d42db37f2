/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counts the runs that crash while they restore what an earlier run has left. The service is
 * restarted after each crash, with the same state, and without a limit.
 *
 * The count is in a file of the preserved runtime directory. A handler of the signals of a crash
 * raises it; a run that is killed otherwise, or that is told to stop, changes nothing.
 */

#include "core/util.h"

#define RESTORE_CRASHES_MAX 3u /* in a row */

/* Begins to watch; returns how many runs have crashed in a row. directory may be NULL: 0. */
unsigned restore_watch_begin(const char *directory);

void restore_watch_failed(void); /* restoring has failed without a crash */
void restore_watch_end(void);    /* this run has restored everything */

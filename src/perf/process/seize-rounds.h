/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How often a tree that is being stopped (seize.h) is looked at.
 *
 * Stopped threads have no new children, so one look that finds nothing new would be enough if /proc
 * listed all children reliably while one of them is being killed.
 */

#include "core/util.h"

/* Calls look until it has found nothing new twice in a row. Another return of it than 0 ends that
 * and is returned. */
int seize_rounds(int (*look)(void *userdata, bool *ret_new), void *userdata);

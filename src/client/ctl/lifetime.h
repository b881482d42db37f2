/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How long a hold lasts, of what was asked for.
 */

#include "client/ctl/ctl-options.h"
#include "client/object.h"

/* Says so if the hold ends earlier than --lifetime after since_usec (CLOCK_REALTIME). */
void lifetime_say_cut(const Object *hold, uint64_t since_usec, const CtlOptions *o);

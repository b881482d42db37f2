/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Holds that have ended: they can be read for a while, HOLD_READABLE_MAX of each user, and are
 * unknown objects from then on.
 */

#include "service/hold/hold-object.h"

int hold_history_init(Holds *holds);

void hold_retire(Hold *h);             /* it has ended */
void holds_forget_later(Holds *holds); /* those that an earlier run has left */

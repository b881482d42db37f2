/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Holds that have ended. They can be read for a while, at most HOLD_READABLE_MAX of each user, and
 * are unknown objects from then on.
 */

#include "service/hold/hold-object.h"

int hold_history_init(Holds *holds);

void hold_retire(Hold *h);             /* when it has ended */
void holds_forget_later(Holds *holds); /* holds of an earlier run */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A hold as it is written to the store, so that it outlives this process.
 */

#include "service/hold/hold-object.h"

/* Keeps it from now on. */
void hold_enter_store(Hold *h);

/* What is known of it now; before anybody is told. */
void hold_save(Hold *h);

/* Reads back what hold_save() has written. -EBADMSG, -ENOMEM. */
int hold_unpack(Hold *h, const Unpack *u);

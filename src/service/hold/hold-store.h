/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Stores holds, so that they outlive this process.
 */

#include "service/hold/hold-object.h"

/* Stores it from now on. */
void hold_enter_store(Hold *h);

/* Saves its present state. To be called before anybody is told. */
void hold_save(Hold *h);

/* Reads what hold_save() has written. -EBADMSG, -ENOMEM. */
int hold_unpack(Hold *h, const Unpack *u);

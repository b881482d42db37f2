/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The holds of an earlier run of the service.
 */

#include "service/hold/hold.h"

/* Makes them again, in the ledger's order: active ones are active, waiting ones wait in the same
 * order. Nobody is told, nothing is measured before holds_go_on(). -ENOMEM. */
int holds_restore(Holds *holds);

/* After all who give way are there again: holds that were not granted yet are taken further. */
void holds_go_on(Holds *holds);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Restores the holds of an earlier run of the service.
 */

#include "service/hold/hold.h"

/* Restores them in the ledger's order: active holds are active, queued ones keep their order.
 * Nothing is signalled or measured before holds_go_on(). -ENOMEM. */
int holds_restore(Holds *holds);

/* To be called after all that yield are restored: pending holds go on. */
void holds_go_on(Holds *holds);

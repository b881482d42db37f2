/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Restores the registered monitors of an earlier run of the service.
 */

#include "service/monitor/monitor.h"

/* Monitors that have not answered are asked again, from the loop. yielders_apply() decides about
 * all others. -ENOMEM. */
int monitors_restore(Monitors *monitors);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The registered monitors of an earlier run of the service.
 */

#include "service/monitor/monitor.h"

/* Those that have not answered are asked again, from the loop; for all others who has to yield now
 * is for yielders_apply() to find out. -ENOMEM. */
int monitors_restore(Monitors *monitors);

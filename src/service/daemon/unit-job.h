/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What systemd is doing with this service's unit.
 */

#include "core/util.h"

/* Whether systemd stops the unit, and does not restart it: then nothing outlives this process.
 * False also where nobody knows. Blocks, for three seconds at most. Asks by a connection of its
 * own: on the service's the question waits behind what clients do not read. */
bool unit_job_is_stop(void);

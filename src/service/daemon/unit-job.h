/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What systemd is doing with this service's unit.
 */

#include <systemd/sd-bus.h>

#include "core/util.h"

/* Whether systemd stops the unit, and does not restart it: then nothing outlives this process.
 * False also where nobody knows. Blocks, for a second or two at most. */
bool unit_job_is_stop(sd_bus *bus);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a counter has counted on each CPU or of each thread, as ReadEach and ReadParts tell it. The
 * counter's set was read just now (counter_set_refresh()).
 */

#include "service/counter/counter-object.h"

#include <systemd/sd-bus.h>

int counter_append_rows(sd_bus_message *reply, const Counter *c);  /* a(iuttts) */
int counter_append_parts(sd_bus_message *reply, const Counter *c); /* a(iuustttts) */

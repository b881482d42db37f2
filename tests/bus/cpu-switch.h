/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A CPU that goes offline and comes back.
 */

#include <stdbool.h>

#define SWITCHED_CPU 1 /* which can be switched off on most machines */

/* False: errno tells why. */
bool cpu_switch(bool online);

/* Where it must be possible. */
void cpu_must_switch(bool online);

/* It is online again, however this program ends by itself. */
void cpu_back_at_end(void);

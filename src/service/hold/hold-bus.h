/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * org.perfalloc1.Hold.
 */

#include "service/hold/hold.h"

int hold_bus_register(Holds *holds);

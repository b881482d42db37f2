/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The manager object, /org/perfalloc1.
 */

#include "service/daemon/service.h"

int manager_bus_register(Service *s);

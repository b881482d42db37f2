/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * org.perfalloc1.Manager, and org.freedesktop.DBus.ObjectManager beside it.
 */

#include "service/daemon/manager.h"

int manager_bus_register(Manager *manager);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Manager.ListUsers: the scan is done by the reader, the call answered when it is there.
 */

#include "service/util/context.h"

int users_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);

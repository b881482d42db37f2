/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Manager.ListUsers: the reader scans, and the call is answered with the result.
 */

#include "service/util/context.h"

int users_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "service/broker/broker.h"

/* The handler of Manager.Broker; userdata is the Brokers. */
int broker_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);

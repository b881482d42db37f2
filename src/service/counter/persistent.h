/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Counters that outlive their connection: Counter.Persist and Adopt, Manager.OpenPersistent and
 * ListPersistent. The id of a persistent counter is the decimal number of its object.
 */

#include "service/counter/counter-object.h"

/* The handlers; for the first two userdata is the counter, for the others the Counters. */
int persist_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);
int adopt_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);
int persistent_open_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);
int persistent_list_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* "" for a counter that is not persistent. */
#define PERSISTENT_ID_SIZE sizeof("18446744073709551615")
const char *persistent_id(const Counter *c, char buffer[static PERSISTENT_ID_SIZE]);

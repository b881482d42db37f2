/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One OpenEvents call: the raw event is opened, disabled, on all threads of a process or of its
 * tree, by the steps and rules of an attachment (service/counter/attach-job.h). Then all are
 * enabled, if the client asked for that, and handed out (event-stream.h).
 */

#include "service/event/event-open.h"

#include <systemd/sd-bus.h>

/* The handler of Manager.OpenEvents; userdata is the Events. */
int events_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error);

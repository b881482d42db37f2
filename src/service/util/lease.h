/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Leases: a descriptor in a client's hands whose last close ends what it stands for.
 *
 * It is the write end of a pipe. A socket could be sent over itself to us and would then never hang
 * up; a pipe's write end cannot. When what it stands for ends first, our end is closed, and poll(2)
 * reports an error on the client's.
 */

#include <systemd/sd-event.h>

#include "core/util.h"

/* Makes a lease. The caller closes *ret_ours after freeing *ret_source, and sends *ret_theirs to
 * the client. closed is called when the last copy of *ret_theirs is gone. What the client writes is
 * never read. */
int lease_new(sd_event *event, int *ret_ours, sd_event_source **ret_source,
              sd_event_io_handler_t closed, void *userdata, int *ret_theirs);

/* Another copy of the client's end, made from ours. */
int lease_copy(int ours, int *ret_theirs);

/* Watches a lease of an earlier run of the service. ours stays the caller's. */
int lease_watch(sd_event *event, int ours, sd_event_source **ret_source,
                sd_event_io_handler_t closed, void *userdata);

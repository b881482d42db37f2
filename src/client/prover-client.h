/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Shows the service which processes this user may trace, as programs under the broker ask to count
 * them: opens /proc/PID/maps for it. The messages are those of broker/prover.h.
 */

#include <systemd/sd-event.h>

#include "core/util.h"

typedef struct ProverClient ProverClient;

struct ProverClient {
        int socket;
        sd_event_source *source;
};

#define PROVER_CLIENT_NULL ((ProverClient){ .socket = -1 })

/* Answers from the loop, until it is done. ret_service is the service's end. */
int prover_client_start(ProverClient *p, sd_event *event, int *ret_service);
void prover_client_done(ProverClient *p);

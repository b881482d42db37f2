/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Messages of the service that the bus has not accepted: some client does not read its answers.
 */

#include <systemd/sd-bus.h>

#include "core/util.h"

typedef struct Unsent Unsent;

/* Messages of the service that the bus has not accepted yet. From the first number on, no queue is
 * served. From the second on, refusals are not sent either. At 393,216 libsystemd closes the
 * connection. Messages may be large, so no queue is served either after the bus has been behind for
 * UNSENT_USEC. */
#define UNSENT_MAX         32768u
#define UNSENT_REFUSED_MAX 131072u
#define UNSENT_USEC        USEC_PER_SEC

struct Unsent {
        sd_bus *bus;
        uint64_t since_usec; /* CLOCK_MONOTONIC: since when there have always been some; 0: none */
        bool logged;         /* that this lasts */
};

uint64_t unsent_n(const Unsent *u);

/* Notes since when messages have waited without interruption. Call it before each iteration of the
 * loop. */
void unsent_watch(Unsent *u);

/* Whether the bus does not accept messages. If that lasts it is logged, once until it is over. */
bool unsent_is_stuck(Unsent *u);

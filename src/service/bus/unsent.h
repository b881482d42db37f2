/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the service has sent and the bus has not taken: some client does not read its answers.
 */

#include <systemd/sd-bus.h>

#include "core/util.h"

typedef struct Unsent Unsent;

/* Messages of ours that the bus has not taken yet: from the first number on no queue is served,
 * from the second on refusals are not sent either. libsystemd closes the connection at 393,216. Nor
 * is a queue served when the bus has been behind for that time: messages may be large. */
#define UNSENT_MAX         32768u
#define UNSENT_REFUSED_MAX 131072u
#define UNSENT_USEC        USEC_PER_SEC

struct Unsent {
        sd_bus *bus;
        uint64_t since_usec; /* CLOCK_MONOTONIC: since when there has always been some; 0: none */
        bool said;           /* that this lasts */
};

uint64_t unsent_n(const Unsent *u);

/* To be called before each iteration of the loop. */
void unsent_watch(Unsent *u);

/* Whether the bus does not take what we send. That it lasts is said once, until it is over. */
bool unsent_is_stuck(Unsent *u);

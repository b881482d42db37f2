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
 * connection. No queue is served either after the bus has been behind for UNSENT_USEC: messages may
 * be large, and a bus that has stopped reading leaves them in the socket. */
#define UNSENT_MAX         32768u
#define UNSENT_REFUSED_MAX 131072u
#define UNSENT_USEC        USEC_PER_SEC

/* How often the socket is looked at, at most: each look is a system call. */
#define UNSENT_LOOK_USEC USEC_PER_MSEC

/* The bus is behind with so many bytes in our socket, as the kernel counts them. The socket takes
 * about 200 KiB. */
#define UNSENT_SOCKET_BYTES (64 * 1024)

struct Unsent {
        sd_bus *bus;
        uint64_t since_usec;  /* CLOCK_MONOTONIC: since when the bus is behind; 0: it is not */
        uint64_t looked_usec; /* when that was found */
        bool logged;          /* that this lasts */
};

uint64_t unsent_n(const Unsent *u);

/* Notes since when the bus has been behind without interruption. Call it before each iteration of
 * the loop. */
void unsent_watch(Unsent *u);

/* Whether the bus does not accept messages. If that lasts it is logged, once until it is over. */
bool unsent_is_stuck(Unsent *u);

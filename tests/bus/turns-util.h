/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests of long work that is done in slices: other clients are answered meanwhile. Answers are
 * counted, not their time.
 */

#include "client.h"

/* Closing takes 2 µs on the service's own CPU. */
enum { MANY = 1000, ANSWERS_MIN = 4 };

typedef struct TurnsFixture {
        Client *other; /* root's */
        unsigned descriptors;
} TurnsFixture;

void turns_set_up(TurnsFixture *f, const void *data);
void turns_tear_down(TurnsFixture *f, const void *data); /* when all counters are gone */

#define TURNS_ADD_WITH(name, data, test)                                                           \
        g_test_add("/turns/" name, TurnsFixture, data, turns_set_up, test, turns_tear_down)
#define TURNS_ADD(name, test) TURNS_ADD_WITH(name, NULL, test)

/* OpenCounters of MANY on these CPUs. */
sd_bus_message *many_message(Client *c, const char *cpus, const char *role, bool start);
void many_open(Client *c, const char *cpus, const char *role, bool start);

bool bus_knows(Client *c, const char *name);

/* For a service that was stopped by a signal, when the bus has passed on what was sent to it. */
void service_go_on(Client *sender);

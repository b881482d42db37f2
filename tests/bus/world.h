/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Clients that do random calls, and what they know from the answers. A call that a kill of the
 * service has cut off may have been done or not, and either is right: its object is unsure until it
 * is looked at again.
 */

#include "bus-util.h"

#define MONITOR   PERFALLOC_MONITOR_INTERFACE
#define N_CLIENTS 4

typedef struct Held {
        char *path;
        int lease;  /* -1: unattended */
        bool all;   /* all CPUs: monitors count nowhere */
        bool alone; /* all CPUs, and exclusive: such holds are in one queue */
        bool granted, unsure;
        uint64_t uid, pid, requested, granted_at;
} Held;

typedef struct Counted {
        char *path;
        Client *client; /* NULL: it has left, and the counter stays */
        uint64_t uid;
        bool monitor, persistent, unsure;
        uint64_t value, enabled;
} Counted;

typedef struct Stream {
        char *path;
        Client *client;
        int fd;
        bool any;
        uint64_t tick, value;
} Stream;

typedef struct Registered {
        char *path;
        Client *client;
        int lease;
} Registered;

typedef struct World {
        Client *root; /* looks at everything */
        Client *clients[N_CLIENTS];
        GPtrArray *holds, *counters, *streams, *monitors;
        bool soft;    /* software events are held and monitored, and no breakpoints */
        pid_t tree;   /* alice's, to be attached with its descendants; 0: none */
        bool crowded; /* others fill the service's queue at the bus, which then takes no more */
        bool lost;    /* a call was cut off: there may be unknown objects */
        guint n_lost, n_done, n_refused;
} World;

typedef enum Outcome {
        DONE,
        REFUSED,
        LOST,
} Outcome;

World world_new(void);
void world_end(World *w); /* all clients give back all that they have, and leave; others come */
void world_done(World *w);

void world_join(World *w, size_t i); /* client i comes, again */

/* One of the clients does something. */
void world_act(World *w);

/* No client has lost anything, and every object was made by a client that is still there. */
void world_check(World *w);
void world_check_nothing_is_left(World *w); /* the latter alone */

/* For acts and checks: calls that may be cut off. Any other failure ends the test. */
Outcome world_send(World *w, Client *c, sd_bus_message *m, sd_bus_message **ret);
Outcome world_call(World *w, Client *c, const char *path, const char *interface, const char *member,
                   sd_bus_message **ret, const char *types, ...);

/* Repeats it until it is answered, however often the service is killed. */
sd_bus_message *world_ask(World *w, Client *c, const char *path, const char *interface,
                          const char *member);

/* Answers requests to yield. */
void world_answer_yields(World *w);

/* Reads it; its value never falls. */
void counted_look(World *w, Counted *c);

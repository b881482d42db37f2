/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A hold from the asking side: Hold, Wait, and what its end looks like.
 *
 * The service knows the holder by the process that connected to the bus, and the hold lasts as long
 * as the lease, so whoever calls this has to stay.
 */

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "client/agent.h"
#include "client/object.h"
#include "client/options.h"
#include "client/progress.h"
#include "client/signals.h"

typedef struct HoldClient HoldClient;
typedef void (*HoldClientEnded)(void *userdata, const char *why);

enum {
        HOLD_CLIENT_GRANTED = 0,
        HOLD_CLIENT_E_FAILED,      /* the words are in why */
        HOLD_CLIENT_E_INTERRUPTED, /* by signo */
};

struct HoldClient {
        const Options *options;
        Signals *signals;
        sd_event *event;
        sd_bus *bus;

        char *path;
        int lease;
        bool confirmed;
        uint64_t latency_usec; /* from authorization to grant */
        Object hold; /* as it was granted; empty when quiet, or when it could not be read */
        int signo;

        Agent agent;
        Progress progress;
        bool interactive; /* asking with leave to prompt */
        unsigned n_lost;  /* calls of Hold that came to nothing */
        sd_bus_slot *call;
        bool settled;
        int outcome; /* one of the above, or a negative errno */
        Refusal why;

        sd_event_source *lease_source;
        HoldClientEnded ended;
        void *userdata;
};

#define HOLD_CLIENT_NULL                                                                           \
        ((HoldClient){ .lease = -1, .agent = AGENT_NULL, .progress = PROGRESS_NULL })

/* The entries of Hold's options that o asks for; the array is the caller's. */
int hold_options_append(sd_bus_message *m, const Options *o);

/* Connects. HOLD_CLIENT_E_FAILED: c->why says why not. */
int hold_client_open(HoldClient *c, const Options *options, Signals *signals);
void hold_client_close(HoldClient *c);

/* Runs the event loop until the hold is granted, or will not be. Asks without leave to prompt
 * first: most need no password, and then no agent. SIGINT, SIGTERM and SIGHUP are
 * HOLD_CLIENT_E_INTERRUPTED. */
int hold_client_take(HoldClient *c);

/* From now on ended is called, once, when the granted hold ends by itself. */
int hold_client_watch(HoldClient *c, HoldClientEnded ended, void *userdata);

/* Gives the counters back; when it returns monitors have been told, unless the service does not
 * answer: the lease goes in any case. */
void hold_client_release(HoldClient *c);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A hold as its client sees it: Hold, Wait, and its end.
 *
 * The service identifies the holder by the process that connected to the bus, and the hold lasts as
 * long as the lease. So the calling process has to stay.
 */

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "client/agent.h"
#include "client/lifetime.h"
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
        Lifetime lifetime;
        Object hold; /* when it was granted; empty if it was not read */
        int signo;

        Agent agent;
        Progress progress;
        bool interactive; /* polkit may prompt */
        unsigned n_lost;  /* calls of Hold that were lost with the service */
        sd_bus_slot *call;
        sd_event_source *again; /* Wait is to be called again, when the service is back perhaps */
        bool settled;
        int outcome; /* one of the above, or a negative errno */
        Refusal why;

        sd_event_source *lease_source;
        HoldClientEnded ended;
        void *userdata;
};

#define HOLD_CLIENT_NULL                                                                           \
        ((HoldClient){ .lease = -1, .agent = AGENT_NULL, .progress = PROGRESS_NULL })

/* Appends the entries of Hold's options that o asks for; the array is the caller's. */
int hold_options_append(sd_bus_message *m, const Options *o);

/* Connects. HOLD_CLIENT_E_FAILED: c->why says why not. */
int hold_client_open(HoldClient *c, const Options *options, Signals *signals);
void hold_client_close(HoldClient *c);

/* Runs the event loop until the hold is granted, or failed. The first call does not allow a prompt:
 * most users need no password, and then no agent. SIGINT, SIGTERM and SIGHUP are
 * HOLD_CLIENT_E_INTERRUPTED. */
int hold_client_take(HoldClient *c);

/* What the kernel keeps of a PMU of the hold, in words; NULL: nothing, or it cannot be asked. */
char *hold_client_kernel(const HoldClient *c, const char *pmu);

/* Whether the granted hold has ended, which ended is perhaps still to be told. */
bool hold_client_has_ended(const HoldClient *c);

/* ended will be called once, when the granted hold ends by itself. */
int hold_client_watch(HoldClient *c, HoldClientEnded ended, void *userdata);

/* Releases the hold. When it returns, monitors have been told, unless the service does not answer:
 * the lease is closed in any case. */
void hold_client_release(HoldClient *c);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Everything that the running service has, and its life from start to idle exit.
 */

#include <perfalloc/dbus.h>
#include <sys/queue.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "core/ledger.h"
#include "core/quota.h"
#include "perf/pmu/pmu.h"
#include "service/auth/auth.h"
#include "service/bus/fairqueue.h"
#include "service/bus/host-state.h"
#include "service/bus/peer.h"
#include "service/bus/scheduler.h"
#include "service/event/issued-events.h"
#include "service/sibling/reader.h"
#include "service/store/store.h"
#include "service/util/config.h"
#include "service/util/serial.h"
#include "yield/yielders.h"

typedef struct Service Service;
typedef struct Hold Hold;
typedef struct Counter Counter;
typedef struct Configured Configured;
typedef struct ReadingCache ReadingCache;
typedef struct Probing Probing;
typedef struct Samplers Samplers;
typedef struct Bridges Bridges;

/* Objects are kept by their numbers (glibc's tsearch(3): a balanced tree). */
TAILQ_HEAD(HoldList, Hold);
TAILQ_HEAD(CounterList, Counter);
LIST_HEAD(ConfiguredList, Configured);
LIST_HEAD(CounterSetList, CounterSet);
LIST_HEAD(CallList, Call);

#define COUNTERS_RECENT 1024u

/* Granted holds that have all counters of a slot, and those of them whose measurement found them
 * free. */
typedef struct Cover {
        uint32_t n_full, n_confirmed;
} Cover;

struct Service {
        Config config;
        char *config_path, *monitors_directory;
        sd_event *event;
        sd_bus *bus;
        Peers *peers;
        Auth *auth;
        Scheduler *turns;
        Reader *helper;
        PmuTable pmus;
        Ledger ledger;
        Yielders roster;
        Quota quota;
        Serial serial;
        Store *store; /* what outlives this process */
        HostState recall;

        void *holds;             /* tree of Hold by id, ended ones that can still be read too */
        struct HoldList pending; /* active, not granted yet, in the ledger's order */
        struct HoldList granted;
        struct HoldList ended; /* oldest first */
        size_t n_holds;        /* not ended */
        Cover **cover;         /* by PMU and CPU: what granted holds of all counters cover */
        bool advancing, advance_again;
        sd_event_source *forget; /* when the oldest ended hold goes */

        void *monitors; /* tree of Monitor by id */
        size_t n_monitors;
        struct ConfiguredList configured; /* monitors of monitors.d */
        void *counters;                   /* tree of Counter by id */
        Counter *recent[COUNTERS_RECENT]; /* made or found last, by id */
        struct CounterSetList sets;
        FairQueue seizes; /* in front of the helper, for those that stop trees */
        bool pumping;
        struct CallList calls; /* under way */
        IssuedEvents handed;   /* which events were handed out */
        Probing *probing;
        struct CounterList changed; /* State to be signalled when there is time */
        sd_event_source *announce;
        sd_event_source *retry; /* counters that could not be opened again */
        uint64_t n_limited;     /* descriptors of those that KeptDescriptors= is about */
        size_t n_by_hold;       /* sets that are kept beyond that, for their user holds counters */
        bool unkept_changed;    /* and is not written down */
        uint64_t n_unkept;      /* counters that end with this process */
        bool unkept_told;       /* that there are any */

        Samplers *samplers;
        Bridges *bridges;

        const sd_bus_message
                *manager_message; /* being answered; its sender may read what is others' */
        bool broadcasting; /* properties are being read for everybody, not for the current message's
                              sender */
        bool leaving;      /* the name is given back; exit when nothing more arrives */
        sd_event_source *idle;
        sd_event_source *hotplug;
        sd_event_source *measure; /* until capacities are known */
};

/* Starts everything up to the bus name. helper was forked before (reader_fork()) and is taken over.
 * Configured monitors are in monitors.d beside the configuration file. */
int service_new(Reader *helper, const char *config_path, Service **ret);
Service *service_free(Service *s);
DEFINE_CLEANUP(Service *, service_free)

/* Runs the loop until idle exit, SIGTERM or SIGINT. */
int service_run(Service *s);

/* Something was added or has gone: the time of idleness starts anew, or not at all. */
void service_touch(Service *s);

/* Whether the one who reads properties now may see what tells about uid's program: the owner, root
 * and whoever polkit allows manage; nobody while a signal to everybody is put together. */
bool redaction_allows(Service *s, uid_t uid);

/* Whether the peer may use an object of uid: 0, AUTH_PENDING, -ESTALE or REFUSAL_NOT_OWNER. what
 * names the object in the refusal. */
int service_check_owner(Service *s, Peer *peer, sd_bus_message *m, uid_t uid, const char *what,
                        Refusal *why);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A broker: its data. Its life is in broker.h.
 */

#include <sys/queue.h>

#include "service/event/event-open.h"
#include "service/sibling/reader-wire.h"
#include "service/sibling/reader.h"
#include "service/store/store.h"

typedef struct Broker Broker;
typedef struct Brokers Brokers;

#define BROKERS_MAX READER_BROKERS_MAX

struct Broker {
        Brokers *brokers;
        uint64_t id; /* in the store alone */
        uid_t uid;
        gid_t *gids;
        size_t n_gids;
        unsigned actions; /* that were authorized */
        uint64_t start;   /* when it was made, as in OtherFacts */
        QuotaCharge charge;
        StoreItem item;

        int listener, page;
        int prover; /* -1: none */
        sd_event_source *listener_source;

        /* of the worker */
        ReaderJob *job;
        int socket;
        int lease; /* a pipe: the worker ends when this, the write end, is closed */
        sd_event_source *io;
        unsigned n_failed; /* workers, one after the other */
        LIST_ENTRY(Broker) list;
};

struct Brokers {
        Context *context;
        Events *events;
        LIST_HEAD(, Broker) all;
        size_t n;
        uint64_t last_id;
};

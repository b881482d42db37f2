/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Many events on their way to a client: of each the thread's number, 64 bits, and the descriptor,
 * as a message on a SOCK_SEQPACKET socket, which then ends.
 *
 * The socket takes a few messages at a time, the others wait here until the client reads. All of
 * them are charged to the client's user until it has read the last one, or closed the socket. They
 * are not stored: a restart of the service ends the stream early, and the client, which was told
 * their number, opens anew.
 */

#include <systemd/sd-event.h>

#include "service/bus/peer.h"
#include "service/event/event-open.h"

typedef struct EventStreamItem EventStreamItem;

struct EventStreamItem {
        pid_t tid;
        int fd;
};

struct EventStream {
        Events *events;
        Peer *peer;
        const Pmu *pmu;
        int cpu; /* -1: all */
        size_t n_items, n_sent;
        EventStreamItem *items;
        QuotaCharge charge;
        int fd;
        sd_event_source *io;
        LIST_ENTRY(EventStream) streams;
};

/* Has room for the events of n threads, and none yet. REFUSAL_LIMITS_EXCEEDED: the user has too
 * many descriptors. */
int event_stream_new(Events *events, Peer *peer, const EventRequest *q, size_t n, EventStream **ret,
                     Refusal *why);

/* Takes fd over. */
void event_stream_add(EventStream *s, pid_t tid, int fd);

/* Starts to send, and puts the client's end into ret_fd, which the caller closes. The stream frees
 * itself from then on. On failure it is as before. */
int event_stream_start(EventStream *s, int *ret_fd);

/* Ends the stream; what was not sent is closed. NULL is fine. Returns NULL. */
EventStream *event_stream_free(EventStream *s);
DEFINE_CLEANUP(EventStream *, event_stream_free)

void event_streams_done(Events *events);

/* Calls f for the streams of other users with events in the scope that were not taken yet. */
void event_streams_foreign(const Events *events, uid_t uid, const Scope *scope,
                           void (*f)(void *userdata, const Peer *peer, const Pmu *pmu),
                           void *userdata);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who is on the other end: one Peer per bus connection that has called us.
 *
 * Credentials come from the bus (GetConnectionCredentials), once per connection and without
 * blocking, never from /proc: a unique name is never used twice, a pid is. A filter in front of all
 * objects keeps a message back until its sender is known and then puts it into the queue again
 * (sd_bus_enqueue_for_read), so every handler finds its Peer at once. A sender's messages stay in
 * order: libsystemd reads nothing new while its queue has something.
 *
 * The bus is asked to tell of the peer's leaving before it is asked who that is, so no leaving is
 * missed. Some peers that own nothing are remembered a little (PEERS_IDLE_MAX), for they may call
 * again.
 */

#include <sys/queue.h>

#include <systemd/sd-bus.h>

#include "core/util.h"
#include "service/bus/namewatch.h"

typedef struct Peer Peer;
typedef struct Peers Peers;
typedef struct PeerKept PeerKept;
typedef struct Call Call;

#define PEER_KEPT_MAX  128   /* messages of one sender: the bus lets it await 128 replies */
#define PEERS_KEPT_MAX 16384 /* of all senders together */
#define PEERS_IDLE_MAX 64

STAILQ_HEAD(PeerKeptList, PeerKept);

struct Peer {
        Peers *peers;
        unsigned n_ref;
        char *name; /* unique name, ":1.23" */
        uid_t uid;
        pid_t pid;   /* 0 where the bus cannot tell: another pid namespace */
        gid_t *gids; /* primary and supplementary, as of when the connection was made */
        size_t n_gids;
        bool gone;               /* it has left the bus */
        LIST_HEAD(, Call) calls; /* under way */

        /* peer.c's own */
        bool known; /* the credentials above are the bus's answer */
        bool idle;
        struct PeerKeptList kept; /* until it is known */
        unsigned n_kept;
        unsigned n_due; /* put into the queue again, each with a reference, and not handled yet */
        NameWatch watch;
        sd_bus_slot *question;
        TAILQ_ENTRY(Peer) idle_entry;
};

/* Called once when a peer leaves that a handler may know, before the last reference may go. */
typedef void (*PeerGone)(void *userdata, Peer *peer);

/* Installs the filter on bus. Messages that cannot wait any more (PEER_KEPT_MAX, PEERS_KEPT_MAX)
 * are answered LimitsExceeded. libsystemd runs the filter that was added last first: a filter that
 * itself wants to know the sender has to be added before this one. */
int peers_new(sd_bus *bus, PeerGone gone, void *userdata, Peers **ret);
Peers *peers_free(Peers *p);

/* The sender of a method call that passed the filter; never NULL there. Borrowed. */
Peer *peers_sender(Peers *p, sd_bus_message *m);

/* A peer that an earlier run of the service knew, with what it knew of it; a reference for the
 * caller. The bus is asked whether it is still there: if not, or if the uid is another, it leaves,
 * from the loop. */
int peers_recall(Peers *p, const char *name, uid_t uid, pid_t pid, Peer **ret);

Peer *peer_ref(Peer *p);

/* Returns NULL. A peer that owns nothing and awaits nothing is forgotten, sooner or later. */
Peer *peer_unref(Peer *p);

static inline void peer_unrefp(Peer **p) {
        if (*p)
                *p = peer_unref(*p);
}

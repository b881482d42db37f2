/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who is on the other end: one Peer per bus connection that has called us.
 *
 * Credentials come from the bus (GetConnectionCredentials), once per connection and without
 * blocking, never from /proc: a unique name is never used twice, a pid is. Its messages wait until
 * then (scheduler.h), so every handler finds its Peer at once.
 *
 * Whether uid 0 is root the bus does not tell, so the reader looks at the process, by the bus's
 * pidfd. A bus that tells none (dbus-daemon before 1.15.8) tells a number, which a process that has
 * left its connection to another may have lost to a third; it can only be uid 0 all the same.
 *
 * The bus is asked to tell of the peer's leaving before it is asked who that is, so no leaving is
 * missed. Some peers that own nothing are remembered a little (PEERS_IDLE_MAX), for they may call
 * again.
 */

#include <sys/queue.h>

#include <systemd/sd-bus.h>

#include "core/util.h"
#include "service/bus/namewatch.h"
#include "service/sibling/reader.h"

typedef struct Peer Peer;
typedef struct Peers Peers;
typedef struct PeersHooks PeersHooks;
typedef struct Request Request;

#define PEERS_IDLE_MAX 64

struct Peer {
        Peers *peers;
        unsigned n_ref;
        char *name; /* unique name, ":1.23" */
        uid_t uid;
        pid_t pid;   /* 0 where the bus cannot tell: another pid namespace */
        gid_t *gids; /* primary and supplementary, as of when the connection was made */
        size_t n_gids;
        bool root;  /* uid 0 with what it takes (process_is_root()): polkit is not asked */
        bool known; /* the credentials above are the bus's answer */
        bool gone;  /* it has left the bus */
        TAILQ_HEAD(, Request) requests; /* under way, in the order of arrival */

        /* peer.c's own */
        bool idle;
        bool recalled; /* uid and pid are from an earlier run */
        NameWatch watch;
        sd_bus_slot *question;
        ReaderJob *look; /* at a uid 0 */
        TAILQ_ENTRY(Peer) idle_entry;
};

struct PeersHooks {
        /* The credentials are known now. error is 0, -ENODATA (the bus does not tell who it is) or
         * -ENOMEM; after an error the peer leaves. */
        void (*known)(void *userdata, Peer *peer, int error);
        /* Called once when a peer leaves, before the last reference may go. */
        void (*gone)(void *userdata, Peer *peer);
};

/* reader NULL: nobody is root. */
int peers_new(sd_bus *bus, Reader *reader, const PeersHooks *hooks, void *userdata, Peers **ret);
Peers *peers_free(Peers *p);

/* The peer of that unique name, which is asked for when it is a new one. Borrowed. */
int peers_get(Peers *p, const char *name, Peer **ret);

/* The message that is handled next is the peer's: it stays until another one is, whatever else lets
 * go of it meanwhile. */
void peers_set_current(Peers *p, Peer *peer);

/* The sender of a method call that is being handled; never NULL there. Borrowed. */
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

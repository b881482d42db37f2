/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who is on the other end: one Peer per bus connection that has called us.
 *
 * Credentials come from the bus (GetConnectionCredentials), once per connection and without
 * blocking, never from /proc: a unique name is never used twice, a pid is. Its messages wait until
 * then (scheduler.h), so every handler finds its Peer at once. The process is held from the
 * connection's making where the bus passes its pidfd, else from its first call.
 *
 * The bus is asked to tell of the peer's leaving before it is asked who that is, so no leaving is
 * missed. Some peers that own nothing are remembered a little (PEERS_IDLE_MAX), for they may call
 * again.
 */

#include <sys/queue.h>

#include <systemd/sd-bus.h>

#include "core/refusal.h"
#include "service/bus/namewatch.h"

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
        pid_t pid; /* 0 where the bus cannot tell: another pid namespace */
        int pidfd; /* of that process, so that its number is not another's meanwhile; -1: none */
        bool numbers_like_us; /* it means the same processes by their numbers as the service */
        gid_t *gids;          /* primary and supplementary, as of when the connection was made */
        size_t n_gids;
        bool known;                     /* the credentials above are the bus's answer */
        bool gone;                      /* it has left the bus */
        TAILQ_HEAD(, Request) requests; /* under way, in the order of arrival */

        /* peer.c's own */
        bool idle;
        NameWatch watch;
        sd_bus_slot *question;
        TAILQ_ENTRY(Peer) idle_entry;
};

struct PeersHooks {
        /* The credentials are known now. error is 0, -ENODATA (the bus does not tell who it is) or
         * -ENOMEM; after an error the peer leaves. */
        void (*known)(void *userdata, Peer *peer, int error);
        /* Called once when a peer leaves, before the last reference may go. */
        void (*gone)(void *userdata, Peer *peer);
};

int peers_new(sd_bus *bus, const PeersHooks *hooks, void *userdata, Peers **ret);
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

/* The peer's own process, a pidfd for the caller. REFUSAL_NO_SUCH_PROCESS: it has ended, or the bus
 * cannot tell which it is. -EMFILE. */
int peer_process(const Peer *p, pid_t *ret_pid, int *ret_pidfd, Refusal *why);

Peer *peer_ref(Peer *p);

/* Returns NULL. A peer that owns nothing and awaits nothing is forgotten, sooner or later. */
Peer *peer_unref(Peer *p);

static inline void peer_unrefp(Peer **p) {
        if (*p)
                *p = peer_unref(*p);
}

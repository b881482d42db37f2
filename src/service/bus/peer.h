/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Peers: one for each bus connection that has called the service.
 *
 * Credentials come from the bus (GetConnectionCredentials), once per connection and without
 * blocking, never from /proc: unique names are never reused, pids are. The peer's messages wait for
 * them (scheduler.h), so every handler finds its Peer at once. The process is held by a pidfd: the
 * bus's own, made when the connection was made, else one that is opened at the first call.
 *
 * Whether uid 0 is root the bus does not tell, so the reader looks at the process, by the bus's
 * pidfd. A bus that has none (dbus-daemon before 1.15.8) has a number, which another process may
 * have by then if the connection was passed on; that process can only be one of uid 0 all the same.
 *
 * The peer's name is watched before the bus is asked for its credentials, so its leaving is never
 * missed. Up to PEERS_IDLE_MAX peers that nothing refers to are kept, because they may call again.
 */

#include <sys/queue.h>

#include <systemd/sd-bus.h>

#include "core/refusal.h"
#include "service/bus/namewatch.h"
#include "service/sibling/reader.h"

typedef struct Delivery Delivery;
typedef struct Peer Peer;
typedef struct PeerDelivery PeerDelivery;
typedef struct Peers Peers;
typedef struct PeersHooks PeersHooks;
typedef struct Request Request;

#define PEERS_IDLE_MAX 64

/* delivery.c's own */
struct PeerDelivery {
        Delivery *of;        /* NULL: no descriptors, no question */
        unsigned n_sent;     /* descriptors that the bus may not have delivered yet */
        unsigned n_promised; /* of calls under way */
        unsigned n_asked;    /* of n_sent: those that the question covers */
        bool behind;         /* the bus had messages left at the last answer */
        bool up_to_date;     /* it had none, and nothing was admitted since */
        sd_bus_slot *question;
        TAILQ_ENTRY(Peer) entry;
};

struct Peer {
        Peers *peers;
        unsigned n_ref;
        char *name; /* unique name, ":1.23" */
        uid_t uid;
        pid_t pid; /* 0: the bus does not know; it is in another pid namespace */
        int pidfd; /* of that process, so that its pid is not reused unnoticed; -1: none */
        bool numbers_like_us; /* its pid namespace is the service's: a pid means the same process */
        gid_t *gids;          /* primary and supplementary, as when the connection was made */
        size_t n_gids;
        bool root;  /* uid 0 with its capability (process_is_root()): polkit is not asked */
        bool known; /* the credentials above are valid */
        bool gone;  /* it has left the bus */
        TAILQ_HEAD(, Request) requests; /* under way, in order of arrival */
        PeerDelivery delivery;

        /* private to peer.c */
        bool idle;
        bool recalled; /* uid and pid are from an earlier run */
        bool called;   /* since then */
        NameWatch watch;
        sd_bus_slot *credentials_slot;
        ReaderJob *look; /* at a process of uid 0 */
        TAILQ_ENTRY(Peer) idle_entry;
};

struct PeersHooks {
        /* The credentials have arrived. error is 0, -ENODATA (the bus does not know them) or
         * -ENOMEM. After an error the peer leaves. */
        void (*known)(void *userdata, Peer *peer, int error);
        /* Called once when a peer leaves, before its last reference may be dropped. */
        void (*gone)(void *userdata, Peer *peer);
};

/* reader NULL: nobody is root. */
int peers_new(sd_bus *bus, Reader *reader, const PeersHooks *hooks, void *userdata, Peers **ret);
Peers *peers_free(Peers *p);

/* The peer with that unique name. The bus is asked for the credentials of a new one. Borrowed. */
int peers_get(Peers *p, const char *name, Peer **ret);

/* The message that is handled next is the peer's. The peer is kept until the next such call, even
 * if all references to it are dropped. */
void peers_set_current(Peers *p, Peer *peer);

/* The sender of the method call that is being handled; never NULL there. Borrowed. */
Peer *peers_sender(Peers *p, sd_bus_message *m);

/* A reference to a peer of an earlier run, with the credentials that it had. The bus is asked
 * whether it is still there. If not, or if its uid differs, it leaves from the loop. */
int peers_recall(Peers *p, const char *name, uid_t uid, pid_t pid, Peer **ret);

/* The peer's own process, a pidfd for the caller. REFUSAL_NO_SUCH_PROCESS: it has ended, or the bus
 * cannot tell which it is. -EMFILE. */
int peer_process(const Peer *p, pid_t *ret_pid, int *ret_pidfd, Refusal *why);

Peer *peer_ref(Peer *p);

/* Returns NULL. A peer that nothing refers to is freed sooner or later. */
Peer *peer_unref(Peer *p);

static inline void peer_unrefp(Peer **p) {
        if (*p)
                *p = peer_unref(*p);
}

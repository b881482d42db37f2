/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "peer.h"

#include <search.h>
#include <stdio.h>
#include <string.h>

#include "service/bus/credentials.h"

#define DBUS_NAME "org.freedesktop.DBus"
#define DBUS_PATH "/org/freedesktop/DBus"

struct PeerKept {
        STAILQ_ENTRY(PeerKept) entry;
        sd_bus_message *m;
};

TAILQ_HEAD(PeerList, Peer);

struct Peers {
        sd_bus *bus;
        PeerGone gone;
        void *userdata;
        void *by_name; /* tree of Peer, those on the bus */
        size_t n_kept;
        struct PeerList idle; /* longest idle first */
        size_t n_idle;
        NameWatches watches;
        Peer *current; /* the sender of the message that is being handled, referenced */
        sd_bus_slot *filter;
};

static int peer_compare(const void *a, const void *b) {
        return strcmp(((const Peer *) a)->name, ((const Peer *) b)->name);
}

static Peer *peers_find(Peers *p, const char *name) {
        Peer **found;

        /* only ever compared, never written */
        found = tfind(&(Peer){ .name = (char *) (uintptr_t) name }, &p->by_name, peer_compare);
        return found ? *found : NULL;
}

static Peer *peer_free(Peer *peer) {
        free(peer->gids);
        free(peer->name);
        free(peer);
        return NULL;
}

static sd_bus_message *peer_take_kept(Peer *peer) {
        PeerKept *kept = STAILQ_FIRST(&peer->kept);
        sd_bus_message *m;

        if (!kept)
                return NULL;
        STAILQ_REMOVE_HEAD(&peer->kept, entry);
        peer->n_kept--;
        peer->peers->n_kept--;
        m = kept->m;
        free(kept);
        return m;
}

/* Takes it out of everything here; what others hold references to stays as it is. */
static void peer_forget(Peer *peer) {
        Peers *p = peer->peers;
        sd_bus_message *m;

        while ((m = peer_take_kept(peer)))
                sd_bus_message_unref(m);
        if (peer->idle) {
                TAILQ_REMOVE(&p->idle, peer, idle_entry);
                p->n_idle--;
                peer->idle = false;
        }
        peer->question = sd_bus_slot_unref(peer->question);
        namewatch_stop(&peer->watch);
        (void) tdelete(peer, &p->by_name, peer_compare);
        peer->peers = NULL;
        peer->n_ref -= peer->n_due; /* what is in the queue will not find it any more */
        peer->n_due = 0;
        if (peer->n_ref == 0)
                peer_free(peer);
}

static void peer_leave(Peer *peer) {
        Peers *p = peer->peers;

        peer->gone = true;
        if (!peer->known) { /* nobody has seen it */
                peer_forget(peer);
                return;
        }
        peer->n_ref++;
        peer_forget(peer);
        p->gone(p->userdata, peer);
        peer_unref(peer);
}

static void on_left(void *userdata, const char *name) {
        Peer *peer = peers_find(userdata, name);

        if (peer)
                peer_leave(peer);
}

static void peer_refuse(Peer *peer, const char *name, const char *text) {
        sd_bus_message *m;

        while ((m = peer_take_kept(peer))) {
                (void) sd_bus_reply_method_errorf(m, name, "%s", text);
                sd_bus_message_unref(m);
        }
        peer_leave(peer);
}

static void peer_rest(Peer *peer) {
        Peers *p = peer->peers;

        if (peer->n_ref > 0 || peer->idle)
                return;
        TAILQ_INSERT_TAIL(&p->idle, peer, idle_entry);
        peer->idle = true;
        if (++p->n_idle > PEERS_IDLE_MAX)
                peer_forget(TAILQ_FIRST(&p->idle));
}

/* Each message in the queue holds the peer, or a crowd would push each other out before their turn.
 */
static void peer_release_kept(Peer *peer) {
        sd_bus_message *m;
        int r;

        while ((m = peer_take_kept(peer))) {
                r = sd_bus_enqueue_for_read(peer->peers->bus, m);
                if (r < 0)
                        (void) sd_bus_reply_method_errno(m, r, NULL);
                else {
                        peer->n_due++;
                        peer_ref(peer);
                }
                sd_bus_message_unref(m);
        }
        peer_rest(peer);
}

static int on_credentials(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Peer *peer = userdata;
        _cleanup_(credentials_done) Credentials credentials = {};
        int r;

        peer->question = sd_bus_slot_unref(peer->question);

        if (sd_bus_message_is_method_error(m, SD_BUS_ERROR_NAME_HAS_NO_OWNER)) {
                peer_leave(peer); /* nobody left to be answered */
                return 1;
        }
        r = sd_bus_message_is_method_error(m, NULL) ? -ENODATA : credentials_read(&credentials, m);
        if (r >= 0 && peer->known && peer->uid != credentials.uid)
                r = -ENODATA; /* recalled from another bus' time */
        if (r < 0) {
                peer_refuse(peer,
                            r == -ENOMEM ? SD_BUS_ERROR_NO_MEMORY : SD_BUS_ERROR_ACCESS_DENIED,
                            r == -ENOMEM ? "the service is out of memory"
                                         : "the bus does not tell who is calling");
                return 1;
        }
        peer->uid = credentials.uid;
        peer->pid = credentials.pid;
        free(peer->gids);
        peer->gids = TAKE_PTR(credentials.gids);
        peer->n_gids = credentials.n_gids;
        peer->known = true;
        peer_release_kept(peer);
        return 1;
}

static int peer_ask(Peer *peer) {
        return sd_bus_call_method_async(peer->peers->bus, &peer->question, DBUS_NAME, DBUS_PATH,
                                        DBUS_NAME, "GetConnectionCredentials", on_credentials, peer,
                                        "s", peer->name);
}

static int peer_new(Peers *p, const char *name, Peer **ret) {
        Peer *peer;
        int r;

        peer = calloc(1, sizeof(*peer));
        if (!peer)
                return -ENOMEM;
        STAILQ_INIT(&peer->kept);
        peer->peers = p;
        peer->name = strdup(name);
        if (!peer->name || !tsearch(peer, &p->by_name, peer_compare)) {
                peer_free(peer);
                return -ENOMEM;
        }
        r = namewatch_start(&p->watches, peer->name, &peer->watch);
        if (r >= 0)
                r = peer_ask(peer);
        if (r < 0) {
                peer_forget(peer);
                return r;
        }
        *ret = peer;
        return 0;
}

static int peer_keep(Peer *peer, sd_bus_message *m, sd_bus_error *error) {
        PeerKept *kept;

        if (peer->n_kept >= PEER_KEPT_MAX || peer->peers->n_kept >= PEERS_KEPT_MAX)
                return sd_bus_error_setf(
                        error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                        "more calls at once than can wait until the bus has said who "
                        "is calling (%d of one connection, %d of all): send fewer",
                        PEER_KEPT_MAX, PEERS_KEPT_MAX);
        kept = malloc(sizeof(*kept));
        if (!kept)
                return -ENOMEM;
        kept->m = sd_bus_message_ref(m);
        STAILQ_INSERT_TAIL(&peer->kept, kept, entry);
        peer->n_kept++;
        peer->peers->n_kept++;
        return 1;
}

/* Its message is next: a handler finds it here, whatever else it lets go of meanwhile. */
static void peers_set_current(Peers *p, Peer *peer) {
        Peer *old = p->current;

        p->current = peer_ref(peer);
        if (peer->n_due > 0) {
                peer->n_due--;
                peer_unref(peer);
        }
        if (old)
                peer_unref(old);
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Peers *p = userdata;
        const char *name;
        uint8_t type;
        Peer *peer;
        int r;

        if (sd_bus_message_get_type(m, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL)
                return 0;
        name = sd_bus_message_get_sender(m);
        if (!name)
                return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED,
                                        "a call without a sender: not from a bus");

        peer = peers_find(p, name);
        if (!peer) {
                r = peer_new(p, name, &peer);
                if (r < 0)
                        return r;
        }
        if (!peer->known)
                return peer_keep(peer, m, error);
        peers_set_current(p, peer);
        return 0;
}

int peers_new(sd_bus *bus, PeerGone gone, void *userdata, Peers **ret) {
        Peers *p;
        int r;

        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        p->gone = gone;
        p->userdata = userdata;
        TAILQ_INIT(&p->idle);
        p->bus = sd_bus_ref(bus);
        p->watches = (NameWatches){
                .bus = bus,
                .left = on_left,
                .userdata = p,
        };
        r = sd_bus_add_filter(bus, &p->filter, on_message, p);
        if (r < 0) {
                peers_free(p);
                return r;
        }
        *ret = p;
        return 0;
}

Peers *peers_free(Peers *p) {
        if (!p)
                return NULL;

        p->filter = sd_bus_slot_unref(p->filter);
        if (p->current)
                peer_unref(p->current);
        while (p->by_name) /* the root of the tree, whichever that is; it goes with peer_forget() */
                peer_forget(*(Peer **) p->by_name);
        sd_bus_unref(p->bus);
        free(p);
        return NULL;
}

Peer *peers_sender(Peers *p, sd_bus_message *m) {
        const char *name = sd_bus_message_get_sender(m);

        return name ? peers_find(p, name) : NULL;
}

int peers_recall(Peers *p, const char *name, uid_t uid, pid_t pid, Peer **ret) {
        Peer *peer;
        int r;

        peer = peers_find(p, name);
        if (!peer) {
                r = peer_new(p, name, &peer);
                if (r < 0)
                        return r;
        }
        if (!peer->known) {
                peer->uid = uid;
                peer->pid = pid;
                peer->known = true;
        }
        *ret = peer_ref(peer);
        return 0;
}

Peer *peer_ref(Peer *peer) {
        peer->n_ref++;
        if (peer->idle) {
                TAILQ_REMOVE(&peer->peers->idle, peer, idle_entry);
                peer->peers->n_idle--;
                peer->idle = false;
        }
        return peer;
}

Peer *peer_unref(Peer *peer) {
        if (!peer || --peer->n_ref > 0)
                return NULL;
        if (peer->peers)
                peer_rest(peer);
        else
                peer_free(peer);
        return NULL;
}

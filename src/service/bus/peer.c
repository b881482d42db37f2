/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "peer.h"

#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "perf/process/process.h"
#include "service/bus/credentials.h"

#define DBUS_NAME "org.freedesktop.DBus"
#define DBUS_PATH "/org/freedesktop/DBus"

TAILQ_HEAD(PeerList, Peer);

struct Peers {
        sd_bus *bus;
        Reader *reader;
        PeersHooks hooks;
        void *userdata;
        void *by_name;        /* tree of Peer, those that have not left */
        struct PeerList idle; /* longest idle first */
        size_t n_idle;
        NameWatches watches;
        Peer *current; /* the sender of the message that is being handled, referenced */
};

static int peer_compare(const void *a, const void *b) {
        return strcmp(((const Peer *) a)->name, ((const Peer *) b)->name);
}

static Peer *peers_find(Peers *p, const char *name) {
        Peer **found;

        /* compared only, never written */
        found = tfind(&(Peer){ .name = (char *) (uintptr_t) name }, &p->by_name, peer_compare);
        return found ? *found : NULL;
}

static Peer *peer_free(Peer *peer) {
        close_fd(peer->pidfd);
        free(peer->gids);
        free(peer->name);
        free(peer);
        return NULL;
}

/* Removes the peer from here. Other references to it stay valid. */
static void peer_forget(Peer *peer) {
        Peers *p = peer->peers;

        if (peer->idle) {
                TAILQ_REMOVE(&p->idle, peer, idle_entry);
                p->n_idle--;
                peer->idle = false;
        }
        peer->credentials_slot = sd_bus_slot_unref(peer->credentials_slot);
        peer->look = reader_job_cancel(peer->look);
        namewatch_stop(&peer->watch);
        (void) tdelete(peer, &p->by_name, peer_compare);
        peer->peers = NULL;
        if (peer->n_ref == 0)
                peer_free(peer);
}

static void peer_leave(Peer *peer) {
        Peers *p = peer->peers;

        peer->gone = true;
        peer->n_ref++;
        peer_forget(peer);
        p->hooks.gone(p->userdata, peer);
        peer->pidfd = close_fd(peer->pidfd); /* whoever still refers to it needs no process */
        peer_unref(peer);
}

static void on_left(void *userdata, const char *name) {
        Peer *peer = peers_find(userdata, name);

        if (peer)
                peer_leave(peer);
}

static void peer_set_idle(Peer *peer) {
        Peers *p = peer->peers;

        if (peer->n_ref > 0 || peer->idle)
                return;
        TAILQ_INSERT_TAIL(&p->idle, peer, idle_entry);
        peer->idle = true;
        if (++p->n_idle > PEERS_IDLE_MAX)
                peer_forget(TAILQ_FIRST(&p->idle));
}

static void peer_become_known(Peer *peer) {
        Peers *p = peer->peers;

        peer->known = true;
        peer_ref(peer);
        p->hooks.known(p->userdata, peer, 0);
        peer_unref(peer);
}

/* Its next call asks for the credentials again. */
static void peer_stay_unknown(Peer *peer, int error) {
        Peers *p = peer->peers;

        p->hooks.known(p->userdata, peer, error);
        peer_leave(peer);
}

/* Takes over pidfd; -1: opens one by the pid. 0, also if there is no such process; -EMFILE and
 * others. */
static int peer_hold_process(Peer *peer, pid_t pid, int pidfd) {
        int r = 0;

        if (pidfd < 0 && peer->pidfd >= 0 && peer->pid == pid)
                return 0;
        close_fd(peer->pidfd);
        peer->pid = pid;
        peer->pidfd = pidfd;
        if (pidfd < 0)
                r = MIN(process_open(pid, &peer->pidfd, NULL), 0);
        if (r == -ENOSYS) { /* not a kernel that has CAP_PERFMON, but valgrind */
                peer->root = peer->uid == 0;
                return 0;
        }
        if (peer->pidfd >= 0)
                r = process_numbers_like_us(peer->pidfd);
        peer->numbers_like_us = r > 0;
        return MIN(r, 0);
}

/* A process that has ended is not root. */
static void peer_looked_at(void *userdata, int r, const ProcessFacts *facts, bool neighbour,
                           const Refusal *why) {
        Peer *peer = userdata;

        peer->look = NULL;
        if (r < 0) {
                peer_stay_unknown(peer, -ENOMEM);
                return;
        }
        peer->root = r == 0 && process_is_root(facts);
        peer_become_known(peer);
}

/* Has the reader look at the process of a uid 0. 0: there is nothing to be looked at. */
static int peer_look(Peer *peer) {
        int r;

        if (peer->uid != 0 || !peer->peers->reader || peer->pidfd < 0)
                return 0;
        r = reader_inspect(peer->peers->reader, peer->pidfd, -1, peer_looked_at, peer, &peer->look);
        return r < 0 ? r : 1;
}

static int on_credentials(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Peer *peer = userdata;
        _cleanup_(credentials_done) Credentials credentials = CREDENTIALS_NULL;
        int r;

        peer->credentials_slot = sd_bus_slot_unref(peer->credentials_slot);

        if (sd_bus_message_is_method_error(m, SD_BUS_ERROR_NAME_HAS_NO_OWNER)) {
                peer_leave(peer); /* nobody is left to be answered */
                return 1;
        }
        r = sd_bus_message_is_method_error(m, NULL) ? -ENODATA : credentials_read(&credentials, m);
        if (r >= 0 && peer->recalled && peer->uid != credentials.uid)
                r = -ENODATA; /* recalled, and another user has the name now */
        if (r < 0) {
                peer_stay_unknown(peer, r == -ENOMEM ? r : -ENODATA);
                return 1;
        }
        peer->uid = credentials.uid;
        free(peer->gids);
        peer->gids = TAKE_PTR(credentials.gids);
        peer->n_gids = credentials.n_gids;
        r = peer_hold_process(peer, credentials.pid, TAKE_FD(credentials.pidfd));
        if (peer->recalled && peer->uid == 0 && !peer->called)
                return 1;          /* see peer_call() */
        if (r >= 0 || peer->known) /* a recalled peer stays for what it owns */
                r = peer_look(peer);
        if (r < 0)
                peer_stay_unknown(peer, -ENOMEM);
        else if (r == 0)
                peer_become_known(peer);
        return 1;
}

static int peer_ask(Peer *peer) {
        return sd_bus_call_method_async(peer->peers->bus, &peer->credentials_slot, DBUS_NAME,
                                        DBUS_PATH, DBUS_NAME, "GetConnectionCredentials",
                                        on_credentials, peer, "s", peer->name);
}

static int peer_new(Peers *p, const char *name, Peer **ret) {
        Peer *peer;
        int r;

        peer = calloc(1, sizeof(*peer));
        if (!peer)
                return -ENOMEM;
        TAILQ_INIT(&peer->requests);
        peer->pidfd = -1;
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

/* A recalled peer of uid 0 is looked at when it calls, as any other one: at another moment a thread
 * of its process may act for somebody else. */
static int peer_call(Peer *peer) {
        peer->called = true;
        return peer->known || peer->credentials_slot || peer->look ? 0 : peer_ask(peer);
}

int peers_get(Peers *p, const char *name, Peer **ret) {
        *ret = peers_find(p, name);
        if (*ret)
                return peer_call(*ret);
        return peer_new(p, name, ret);
}

void peers_set_current(Peers *p, Peer *peer) {
        Peer *old = p->current;

        p->current = peer_ref(peer);
        if (old)
                peer_unref(old);
}

int peers_new(sd_bus *bus, Reader *reader, const PeersHooks *hooks, void *userdata, Peers **ret) {
        Peers *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        p->hooks = *hooks;
        p->userdata = userdata;
        TAILQ_INIT(&p->idle);
        p->bus = sd_bus_ref(bus);
        p->reader = reader;
        p->watches = (NameWatches){
                .bus = bus,
                .left = on_left,
                .userdata = p,
        };
        *ret = p;
        return 0;
}

Peers *peers_free(Peers *p) {
        if (!p)
                return NULL;

        if (p->current)
                peer_unref(p->current);
        while (p->by_name) /* the root of the tree; each peer_forget() changes it */
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
        Peer *peer = peers_find(p, name);
        int r = peer ? 0 : peer_new(p, name, &peer);

        if (r < 0)
                return r;
        if (!peer->known) {
                peer->uid = uid;
                peer->recalled = true;
                peer->known = uid != 0; /* whether it is root has to be seen anew */
                (void) peer_hold_process(peer, pid, -1);
        }
        *ret = peer_ref(peer);
        return 0;
}

int peer_process(const Peer *peer, pid_t *ret_pid, int *ret_pidfd, Refusal *why) {
        if (peer->pidfd < 0 || !process_exists(peer->pidfd))
                return refuse(
                        why, REFUSAL_NO_SUCH_PROCESS,
                        "the bus does not report the caller's process, or it has ended; name a "
                        "process by option 'procfd' or 'pidfd'");
        *ret_pidfd = fcntl(peer->pidfd, F_DUPFD_CLOEXEC, 3);
        if (*ret_pidfd < 0)
                return -errno;
        *ret_pid = peer->pid;
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
                peer_set_idle(peer);
        else
                peer_free(peer);
        return NULL;
}

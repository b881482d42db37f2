/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "delivery.h"

#include <string.h>

#include "service/util/log.h"

#define DBUS_NAME       "org.freedesktop.DBus"
#define DBUS_PATH       "/org/freedesktop/DBus"
#define STATS_INTERFACE "org.freedesktop.DBus.Debug.Stats"

struct Delivery {
        Context *context;
        TAILQ_HEAD(, Peer) peers;   /* with descriptors or a question, referenced */
        struct RequestList waiting; /* in the order of arrival */
        bool blind;                 /* the bus does not tell */
        sd_event_source *again;
};

/* ---- what is counted ---- */

static unsigned peer_out(const Peer *peer) {
        return peer->delivery.n_sent + peer->delivery.n_promised;
}

static unsigned delivery_out(const Delivery *d) {
        const Peer *peer;
        unsigned n = 0;

        TAILQ_FOREACH (peer, &d->peers, delivery.entry)
                n += peer_out(peer);
        return n;
}

static unsigned user_out(const Delivery *d, uid_t uid) {
        const Peer *peer;
        unsigned n = 0;

        TAILQ_FOREACH (peer, &d->peers, delivery.entry)
                n += peer->uid == uid ? peer_out(peer) : 0;
        return n;
}

static void peer_list(Delivery *d, Peer *peer) {
        if (peer->delivery.of)
                return;
        peer->delivery.of = d;
        (void) peer_ref(peer); /* the macro evaluates its argument more than once */
        TAILQ_INSERT_TAIL(&d->peers, peer, delivery.entry);
}

/* The peer may be gone after this. */
static void peer_unlist(Peer *peer) {
        Delivery *d = peer->delivery.of;

        if (!d)
                return;
        TAILQ_REMOVE(&d->peers, peer, delivery.entry);
        sd_bus_slot_unref(peer->delivery.question);
        peer->delivery = (PeerDelivery){};
        peer_unref(peer);
}

static void peer_settle(Peer *peer) {
        if (peer_out(peer) == 0 && !peer->delivery.question)
                peer_unlist(peer);
}

static bool within(unsigned out, unsigned n, unsigned max) {
        return out == 0 || out + n <= max;
}

/* Whether n descriptors more can stall nobody: because there is room, or because the bus has
 * nothing left for the peer. */
static bool delivery_may_send(const Delivery *d, const Peer *peer, unsigned n) {
        unsigned total = delivery_out(d), user = user_out(d, peer->uid);

        if (total + n <= DELIVERY_TOTAL_MAX)
                return within(user, n, DELIVERY_USER_MAX) &&
                       within(peer_out(peer), n, DELIVERY_PEER_MAX);
        return total + n <= DELIVERY_LIMIT && user == 0 && peer->delivery.up_to_date;
}

/* ---- the bus is asked ---- */

static void delivery_serve(Delivery *d);

/* Nothing is counted from now on. */
static void delivery_give_up(Delivery *d, const sd_bus_error *error) {
        if (!d->blind)
                log_plain(LOG_INFO,
                          "The bus does not report which clients read (%s); descriptors are sent "
                          "without counting them.",
                          error->message ?: error->name);
        d->blind = true;
}

static int read_outgoing(sd_bus_message *m, uint32_t *ret) {
        const char *key;
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = sd_bus_message_read_basic(m, 's', &key);
                if (r >= 0 && strcmp(key, "OutgoingMessages") == 0)
                        return sd_bus_message_read(m, "v", "u", ret);
                if (r >= 0)
                        r = sd_bus_message_skip(m, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : -ENODATA;
}

static void peer_delivered(Peer *peer, bool all) {
        peer->delivery.behind = !all;
        peer->delivery.up_to_date = all;
        if (all)
                peer->delivery.n_sent -= peer->delivery.n_asked;
        peer->delivery.n_asked = 0;
}

static int on_stats(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Peer *peer = userdata;
        Delivery *d = peer->delivery.of;
        const sd_bus_error *e = sd_bus_message_get_error(m);
        uint32_t n = 0;

        peer->delivery.question = sd_bus_slot_unref(peer->delivery.question);
        /* a peer without a name is just leaving */
        if (e && strcmp(e->name, SD_BUS_ERROR_NAME_HAS_NO_OWNER) != 0)
                delivery_give_up(d, e);
        else if (!e && read_outgoing(m, &n) < 0)
                delivery_give_up(d, &SD_BUS_ERROR_MAKE_CONST(SD_BUS_ERROR_INCONSISTENT_MESSAGE,
                                                             "no OutgoingMessages"));
        peer_delivered(peer, d->blind || n == 0);
        delivery_serve(d);
        peer_settle(peer);
        return 1;
}

static void peer_ask(Delivery *d, Peer *peer) {
        if (peer->delivery.question || peer->gone || d->blind)
                return;
        peer_list(d, peer);
        if (sd_bus_call_method_async(d->context->bus, &peer->delivery.question, DBUS_NAME,
                                     DBUS_PATH, STATS_INTERFACE, "GetConnectionStats", on_stats,
                                     peer, "s", peer->name) < 0) {
                peer_settle(peer); /* no memory: asked again with the next one */
                return;
        }
        peer->delivery.n_asked = peer->delivery.n_sent;
}

/* About all that may have become able to take more. */
static void delivery_ask(Delivery *d, bool also_behind) {
        Peer *peer, *next;

        for (peer = TAILQ_FIRST(&d->peers); peer; peer = next) {
                next = TAILQ_NEXT(peer, delivery.entry);
                if (peer->delivery.n_sent > 0 && (also_behind || !peer->delivery.behind))
                        peer_ask(d, peer);
        }
}

static void delivery_arm(Delivery *d) {
        (void) sd_event_source_set_time_relative(d->again, DELIVERY_AGAIN_USEC);
        (void) sd_event_source_set_enabled(d->again, SD_EVENT_ONESHOT);
}

static int delivery_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Delivery *d = userdata;
        Request *r;

        if (TAILQ_EMPTY(&d->waiting))
                return 0;
        TAILQ_FOREACH (r, &d->waiting, queue)
                peer_ask(d, r->peer);
        delivery_ask(d, true);
        delivery_arm(d);
        return 0;
}

/* ---- what is sent ---- */

static void peer_ask_in_time(Delivery *d, Peer *peer) {
        if (peer->delivery.n_sent >= DELIVERY_ASK || !TAILQ_EMPTY(&d->waiting))
                peer_ask(d, peer);
        if (delivery_out(d) >= DELIVERY_USER_MAX)
                delivery_ask(d, false);
}

/* The reply is sent behind the question, which does not cover it. */
static void peer_count(Delivery *d, Peer *peer, unsigned n) {
        peer_ask_in_time(d, peer);
        peer_list(d, peer);
        peer->delivery.n_sent += n;
}

/* The request has ended, its reply is on its way. */
static void request_given(Request *r) {
        Peer *peer = r->peer;
        Delivery *d = peer->delivery.of;

        if (!d)
                return; /* it has left */
        peer->delivery.n_promised -= r->n_descriptors;
        peer->delivery.n_sent += r->n_descriptors;
        peer_ask_in_time(d, peer);
}

static void request_promise(Delivery *d, Request *r, unsigned n) {
        peer_list(d, r->peer);
        r->n_descriptors = n;
        r->given = request_given;
        r->peer->delivery.n_promised += n;
        r->peer->delivery.up_to_date = false;
}

/* ---- calls that wait ---- */

static void request_unwait(Request *r) {
        TAILQ_REMOVE(&r->context->delivery->waiting, r, queue);
        r->unqueue = NULL;
        quota_release(&r->queued);
}

static int delivery_wait(Delivery *d, Peer *peer, Request *r, unsigned n, Refusal *why) {
        int error = quota_charge(&d->context->quota, peer->uid, QUOTA_CALLS, 1, &r->queued, why);

        if (error != 0)
                return error;
        request_set_state(r, REQUEST_UNDELIVERED);
        TAILQ_INSERT_TAIL(&d->waiting, r, queue);
        r->n_awaited = n;
        r->unqueue = request_unwait;
        peer_ask(d, peer);
        delivery_ask(d, false);
        delivery_arm(d);
        return -EINPROGRESS;
}

static void delivery_serve(Delivery *d) {
        Request *r, *next;

        for (r = TAILQ_FIRST(&d->waiting); r; r = next) {
                next = TAILQ_NEXT(r, queue);
                if (!d->blind && !delivery_may_send(d, r->peer, r->n_awaited))
                        continue;
                request_promise(d, r, r->n_awaited);
                request_resume(r);
        }
}

int delivery_admit(Context *context, Peer *peer, sd_bus_message *m, unsigned n, Refusal *why) {
        Delivery *d = context->delivery;
        Request *r = request_find(context->requests, m);
        bool may = d->blind || delivery_may_send(d, peer, n);
        int error = 0;

        if (n == 0 || peer->gone || (r && r->n_descriptors > 0))
                return 0;
        if (may && !r)
                peer_count(d, peer, n);
        else if (may)
                request_promise(d, r, n);
        if (may)
                return 0;
        if (!r)
                error = request_new(context, peer, m, REQUEST_RUNNING, &r);
        return error < 0 ? error : delivery_wait(d, peer, r, n, why);
}

/* ---- start and end ---- */

void delivery_forget_peer(Delivery *d, Peer *peer) {
        peer_unlist(peer);
        delivery_serve(d); /* it was in somebody's way, perhaps */
}

int delivery_new(Context *context, Delivery **ret) {
        Delivery *d = calloc(1, sizeof(*d));
        int r;

        if (!d)
                return -ENOMEM;
        d->context = context;
        TAILQ_INIT(&d->peers);
        TAILQ_INIT(&d->waiting);
        r = sd_event_add_time(context->event, &d->again, CLOCK_MONOTONIC, 0, 1, delivery_again, d);
        if (r >= 0)
                r = sd_event_source_set_enabled(d->again, SD_EVENT_OFF);
        if (r < 0) {
                delivery_free(d);
                return r;
        }
        *ret = d;
        return 0;
}

Delivery *delivery_free(Delivery *d) {
        if (!d)
                return NULL;
        while (!TAILQ_EMPTY(&d->peers))
                peer_unlist(TAILQ_FIRST(&d->peers));
        sd_event_source_disable_unref(d->again);
        free(d);
        return NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "request.h"

#include "service/util/reply.h"

int call_begin(Call *c, Service *s, Peer *peer, sd_bus_message *m, void (*end)(Call *),
               Refusal *why) {
        *c = (Call){ .service = s, .m = sd_bus_message_ref(m), .peer = peer_ref(peer), .end = end };
        LIST_INSERT_HEAD(&s->calls, c, of_service);
        LIST_INSERT_HEAD(&peer->calls, c, of_peer);
        return quota_charge(&s->quota, peer->uid, QUOTA_CALLS, 1, &c->charge, why);
}

void call_done(Call *c) {
        LIST_REMOVE(c, of_service);
        LIST_REMOVE(c, of_peer);
        quota_release(&c->charge);
        c->peer = peer_unref(c->peer);
        c->m = sd_bus_message_unref(c->m);
        service_touch(c->service);
}

Call *call_find(const Peer *peer, const sd_bus_message *m) {
        Call *c;

        LIST_FOREACH (c, &peer->calls, of_peer)
                if (c->m == m)
                        return c;
        return NULL;
}

void call_fail(Call *c, int r, const Refusal *why) {
        reply_failure_later(c->m, r, why);
        c->end(c);
}

/* The end of one may be the end of another: of two trees the second gets its turn, and fails. */
void calls_forget_peer(Peer *peer) {
        while (!LIST_EMPTY(&peer->calls)) {
                Call *c = LIST_FIRST(&peer->calls);

                c->end(c);
        }
}

void calls_done(Service *s) {
        while (!LIST_EMPTY(&s->calls)) {
                Call *c = LIST_FIRST(&s->calls);

                c->end(c);
        }
}

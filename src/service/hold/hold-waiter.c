/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-waiter.h"

#include "service/bus/request.h"
#include "service/hold/hold-signals.h"

struct HoldWaiter {
        Request *call;
        LIST_ENTRY(HoldWaiter) waiters;
};

static void hold_waiter_end(void *work) {
        HoldWaiter *w = work;

        LIST_REMOVE(w, waiters);
        request_done(w->call);
        free(w);
}

int hold_wait(Hold *h, Peer *peer, sd_bus_message *m, Refusal *why) {
        HoldWaiter *w;
        int r;

        if (h->state == HOLD_GRANTED || h->state == HOLD_ENDED) {
                hold_signal_waiter(h, m);
                return 0;
        }
        w = calloc(1, sizeof(HoldWaiter));
        if (!w)
                return -ENOMEM;
        LIST_INSERT_HEAD(&h->waiters, w, waiters);
        r = request_begin(h->context, peer, m, w, hold_waiter_end, &w->call, why);
        if (r != 0)
                hold_waiter_end(w);
        return r;
}

void hold_answer_waiters(Hold *h) {
        HoldWaiter *w;

        while ((w = LIST_FIRST(&h->waiters))) {
                hold_signal_waiter(h, w->call->m);
                hold_waiter_end(w);
        }
}

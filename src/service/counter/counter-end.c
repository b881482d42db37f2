/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-end.h"

#include "core/clock.h"
#include "service/bus/request.h"
#include "service/counter/counter-closing.h"
#include "service/counter/counter-user.h"
#include "service/counter/counter.h"

/* A set may have found another user since (Adopt), or have become persistent. */
static void counters_end_first(Counters *counters) {
        CounterSet *set = TAILQ_FIRST(&counters->ending);

        TAILQ_REMOVE(&counters->ending, set, endings);
        set->ending = false;
        if (LIST_EMPTY(&set->users) && !set->persistent)
                counter_set_free(set);
}

/* The youngest are closed first, which are the last of the yielders. The end of one can end the
 * attachment of another one, and free that. */
static void counters_end_until(Counters *counters, uint64_t usec) {
        Yielders *yielders = &counters->context->yielders;

        if (TAILQ_EMPTY(&counters->ending))
                return;
        yielders_gather(yielders);
        do
                counters_end_first(counters);
        while (!TAILQ_EMPTY(&counters->ending) && now_usec(CLOCK_MONOTONIC) < usec);
        (void) yielders_settle(yielders);
        store_settle(counters->context->store);
}

/* What is to be closed later takes no counters any more, so it comes last. */
static void counters_close_until(Counters *counters, uint64_t usec) {
        while (!TAILQ_EMPTY(&counters->closing) && now_usec(CLOCK_MONOTONIC) < usec)
                counters_close_some(counters);
}

/* One slice now, the others when others had their turn. */
static void counters_end_some(Counters *counters) {
        uint64_t until = now_usec(CLOCK_MONOTONIC) + SLICE_USEC;

        counters_end_until(counters, until);
        counters_close_until(counters, until);
        if (!TAILQ_EMPTY(&counters->ending) || !TAILQ_EMPTY(&counters->closing))
                turn_wait(&counters->end);
}

static void counters_end_slice(void *userdata) {
        counters_end_some(userdata);
}

bool counters_end_rest(Counters *counters) {
        if (TAILQ_EMPTY(&counters->ending))
                return false;
        counters_end_until(counters, UINT64_MAX);
        return true;
}

/* Whoever opens them still needs them, though their users have left: they come last. */
static void counters_end_others(Counters *counters, CounterSet *const *sets, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (sets[i]->ending)
                        TAILQ_REMOVE(&counters->ending, sets[i], endings);
        (void) counters_end_rest(counters);
        for (size_t i = 0; i < n; i++) {
                if (!sets[i]->ending)
                        continue;
                TAILQ_INSERT_TAIL(&counters->ending, sets[i], endings);
                turn_wait(&counters->end);
        }
}

void counters_end_before(Counters *counters, CounterSet *const *sets, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (group_closes_to_yield(sets[i]->group)) {
                        counters_end_others(counters, sets, n);
                        return;
                }
}

/* ---- which end ---- */

static void counter_set_end(CounterSet *set) {
        if (set->ending)
                return;
        set->ending = true;
        TAILQ_INSERT_TAIL(&set->counters->ending, set, endings);
}

void counters_forget_peer(Counters *counters, Peer *peer) {
        CounterSet *set;

        LIST_FOREACH (set, &counters->sets, sets) {
                if (set->peer == peer)
                        peer_unrefp(&set->peer);
                if (counter_set_forget_user(set, peer))
                        counter_set_end(set);
        }
        counters_end_some(counters);
}

void counter_sets_end(Counters *counters, CounterSet *const *sets, size_t n) {
        while (n-- > 0) {
                counter_set_drop_users(sets[n]);
                sets[n]->persistent = false;
                counter_set_end(sets[n]);
        }
        counters_end_some(counters);
}

void counters_end_init(Counters *counters, Turns *turns) {
        TAILQ_INIT(&counters->ending);
        TAILQ_INIT(&counters->closing);
        turn_init(&counters->end, turns, counters_end_slice, counters);
}

void counters_end_done(Counters *counters) {
        (void) counters_end_rest(counters);
        counters_close_until(counters, UINT64_MAX);
        turn_done(&counters->end);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "user-queue.h"

#include <glib.h>

#include "core/clock.h"
#include "service/bus/test-clock.h"

#define ALICE 2001

/* One call of alice's, which takes so long. */
static UserQueue *called(UserQueues *all, uint64_t usec) {
        UserQueue *u = user_queues_get(all, ALICE);

        g_assert_nonnull(u);
        user_queue_begin(u);
        test_clock_forward(usec);
        user_queues_charge(all);
        return u;
}

static void test_cheap(void) {
        Context context = {};
        UserQueues all;

        user_queues_init(&all, &context);
        g_assert_cmpuint(called(&all, 0)->paused_until_usec, ==, 0);
        g_assert_true(user_queue_is_free(user_queues_get(&all, ALICE)));
        user_queues_done(&all);
}

static void test_expensive(void) {
        Context context = {};
        UserQueues all;
        UserQueue *u;

        user_queues_init(&all, &context);
        u = called(&all, USER_QUEUE_PAUSE_USEC);
        g_assert_cmpuint(u->paused_until_usec, >,
                         now_usec(CLOCK_MONOTONIC) + USER_QUEUE_PAUSE_USEC);
        g_assert_false(user_queue_is_free(u));
        user_queues_done(&all);
}

/* The service was stopped in the middle of the call. */
static void test_stopped(void) {
        Context context = {};
        UserQueues all;
        UserQueue *u;

        user_queues_init(&all, &context);
        u = called(&all, 3600 * USEC_PER_SEC);
        g_assert_cmpuint(u->paused_until_usec, <=,
                         now_usec(CLOCK_MONOTONIC) + USER_QUEUE_PAUSE * USER_QUEUE_COST_MAX_USEC);
        test_clock_forward(10 * USEC_PER_SEC);
        g_assert_true(user_queue_is_free(u));
        user_queues_done(&all);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/user-queue/cheap-calls-are-not-queued", test_cheap);
        g_test_add_func("/user-queue/an-expensive-call-is-followed-by-a-pause", test_expensive);
        g_test_add_func("/user-queue/a-stop-of-the-service-is-not-the-callers", test_stopped);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/util/fairqueue.h"

#include <glib.h>

typedef struct Guest {
        FairItem item;
        uid_t uid;
        int number;
} Guest;

static Guest *next(FairQueue *q) {
        FairItem *item = fairqueue_next(q);

        return item ? container_of(item, Guest, item) : NULL;
}

static void add(FairQueue *q, Guest *guests, int n, uid_t uid) {
        for (int i = 0; i < n; i++) {
                guests[i] = (Guest){ .uid = uid, .number = i };
                g_assert_cmpint(fairqueue_add(q, &guests[i].item, uid), ==, 0);
        }
}

static void test_users_take_turns(void) {
        FairQueue q;
        Guest a[200], b[3];
        Guest *g;

        fairqueue_init(&q, 8, 8, 256);
        add(&q, a, 200, 1);
        for (int i = 0; i < 8; i++)
                g_assert_true(next(&q) == &a[i]);
        add(&q, b, 3, 2);
        g_assert_null(next(&q));

        /* of two free places the new user gets one, the third time too */
        for (int i = 0, seen = 0; i < 6; i++) {
                fairqueue_remove(&q, &a[i].item);
                g = next(&q);
                seen += g->uid == 2;
                g_assert_cmpint(seen, >=, (i + 1) / 2);
        }
        for (int i = 0; i < 200; i++)
                fairqueue_remove(&q, &a[i].item);
        for (int i = 0; i < 3; i++)
                fairqueue_remove(&q, &b[i].item);
        g_assert_null(q.users);
}

static void test_first_come_first_served(void) {
        FairQueue q;
        Guest a[20];

        fairqueue_init(&q, 1, 10, 256);
        add(&q, a, 20, 1);
        for (int i = 0; i < 20; i++) {
                g_assert_true(next(&q) == &a[i]);
                fairqueue_remove(&q, &a[i].item);
        }
        g_assert_null(q.users);
}

static void test_limits_hold(void) {
        FairQueue q;
        Guest a[12], b[12];
        int n = 0;

        fairqueue_init(&q, 8, 12, 256);
        add(&q, a, 12, 1);
        while (next(&q))
                n++;
        g_assert_cmpint(n, ==, 8);
        add(&q, b, 12, 2);
        while (next(&q))
                n++;
        g_assert_cmpint(n, ==, 12);
        for (int i = 0; i < 12; i++) {
                fairqueue_remove(&q, &a[i].item);
                fairqueue_remove(&q, &b[i].item);
        }
        g_assert_cmpuint(q.n_running, ==, 0);
        g_assert_null(q.users);
}

/* A further item of a user runs only beside a slow one. */
static void test_quick_ones_come_one_by_one(void) {
        FairQueue q;
        Guest a[6], b;

        fairqueue_init(&q, 3, 10, 256);
        q.quick_max = 1;
        add(&q, a, 6, 1);
        g_assert_true(next(&q) == &a[0]);
        g_assert_null(next(&q));
        add(&q, &b, 1, 2);
        g_assert_true(next(&q) == &b);
        fairqueue_slow(&a[0].item);
        fairqueue_slow(&a[0].item);
        g_assert_true(next(&q) == &a[1]);
        g_assert_null(next(&q));
        fairqueue_slow(&a[1].item);
        g_assert_true(next(&q) == &a[2]);
        fairqueue_slow(&a[2].item);
        g_assert_null(next(&q)); /* three are the limit in any case */
        fairqueue_return(&q, &a[0].item);
        g_assert_true(next(&q) == &a[0]); /* it counts as quick again */
        fairqueue_remove(&q, &a[1].item);
        g_assert_null(next(&q));
        fairqueue_remove(&q, &a[0].item);
        g_assert_true(next(&q) == &a[3]);
        for (int i = 2; i < 6; i++)
                fairqueue_remove(&q, &a[i].item);
        fairqueue_remove(&q, &b.item);
        g_assert_null(q.users);
}

static void test_full_line_refuses_its_user_alone(void) {
        FairQueue q;
        Guest a[4], b, late;

        fairqueue_init(&q, 1, 10, 3);
        add(&q, a, 1, 1);
        g_assert_nonnull(next(&q));
        add(&q, a + 1, 3, 1);
        g_assert_cmpint(fairqueue_add(&q, &late.item, 1), ==, FAIRQUEUE_FULL);
        add(&q, &b, 1, 2);
        g_assert_true(next(&q) == &b);
        /* an item that was running returns to the head */
        g_assert_cmpint(fairqueue_add_first(&q, &late.item, 1), ==, 0);
        fairqueue_remove(&q, &a[0].item);
        g_assert_true(next(&q) == &late);
        for (int i = 1; i < 4; i++)
                fairqueue_remove(&q, &a[i].item);
        fairqueue_remove(&q, &b.item);
        fairqueue_remove(&q, &late.item);
        g_assert_null(q.users);
}

static void test_returned_is_first_again(void) {
        FairQueue q;
        Guest a[3];

        fairqueue_init(&q, 1, 10, 3);
        add(&q, a, 3, 1);
        g_assert_true(next(&q) == &a[0]);
        fairqueue_return(&q, &a[0].item);
        g_assert_true(next(&q) == &a[0]);
        for (int i = 0; i < 3; i++)
                fairqueue_remove(&q, &a[i].item);
        fairqueue_remove(&q, &a[0].item); /* not queued any more: fine */
        g_assert_null(q.users);
}

/* Random histories, checked against the rules. */
static void test_any_history(void) {
        enum { N = 300 };
        static Guest guests[N];
        unsigned running[6] = {}, total = 0;
        GRand *random = g_rand_new_with_seed(1);
        FairQueue q;

        fairqueue_init(&q, 3, 10, 40);
        for (int i = 0; i < N; i++)
                guests[i] = (Guest){};
        for (int step = 0; step < 100000; step++) {
                Guest *g = &guests[g_rand_int_range(random, 0, N)];

                if (!g->item.user) {
                        g->uid = (uid_t) g_rand_int_range(random, 0, 6);
                        (void) fairqueue_add(&q, &g->item, g->uid);
                } else if (g->item.running && g_rand_boolean(random)) {
                        fairqueue_return(&q, &g->item);
                        running[g->uid]--;
                        total--;
                } else {
                        running[g->uid] -= g->item.running;
                        total -= g->item.running;
                        fairqueue_remove(&q, &g->item);
                }

                g = next(&q);
                if (!g) { /* no item that may start is left waiting */
                        for (int i = 0; i < N && total < 10; i++)
                                if (guests[i].item.user && !guests[i].item.running)
                                        g_assert_cmpuint(running[guests[i].uid], ==, 3);
                        continue;
                }
                running[g->uid]++;
                total++;
                g_assert_cmpuint(running[g->uid], <=, 3);
                g_assert_cmpuint(total, <=, 10);
        }
        for (int i = 0; i < N; i++)
                fairqueue_remove(&q, &guests[i].item);
        g_assert_null(q.users);
        g_rand_free(random);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/fairqueue/users-take-turns", test_users_take_turns);
        g_test_add_func("/fairqueue/first-come-first-served", test_first_come_first_served);
        g_test_add_func("/fairqueue/limits-hold", test_limits_hold);
        g_test_add_func("/fairqueue/quick-ones-come-one-by-one", test_quick_ones_come_one_by_one);
        g_test_add_func("/fairqueue/full-line-refuses-its-user-alone",
                        test_full_line_refuses_its_user_alone);
        g_test_add_func("/fairqueue/returned-is-first-again", test_returned_is_first_again);
        g_test_add_func("/fairqueue/any-history", test_any_history);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "turn.h"

#include <glib.h>

/* A loop in which there is always something else to do. */
typedef struct Loop {
        sd_event *event;
        sd_event_source *other;
        Turns turns;
        unsigned n_others;
        GString *taken;
} Loop;

typedef struct Worker {
        Turn turn;
        Loop *loop;
        char name;
        unsigned n_left;
} Worker;

static int on_other(sd_event_source *source, void *userdata) {
        ((Loop *) userdata)->n_others++;
        return 0;
}

static void loop_init(Loop *l) {
        *l = (Loop){ .taken = g_string_new(NULL) };
        g_assert_cmpint(sd_event_new(&l->event), >=, 0);
        g_assert_cmpint(turns_init(&l->turns, l->event), >=, 0);
        g_assert_cmpint(sd_event_add_defer(l->event, &l->other, on_other, l), >=, 0);
        g_assert_cmpint(sd_event_source_set_enabled(l->other, SD_EVENT_ON), >=, 0);
}

static void loop_done(Loop *l) {
        turns_done(&l->turns);
        sd_event_source_disable_unref(l->other);
        sd_event_unref(l->event);
        g_string_free(l->taken, true);
}

static void loop_run(Loop *l) {
        turns_prepare(&l->turns);
        g_assert_cmpint(sd_event_run(l->event, 0), >=, 0);
}

static void work(void *userdata) {
        Worker *w = userdata;

        g_string_append_c(w->loop->taken, w->name);
        if (--w->n_left > 0)
                turn_wait(&w->turn);
}

static void worker_init(Worker *w, Loop *l, char name, unsigned n) {
        *w = (Worker){ .loop = l, .name = name, .n_left = n };
        turn_init(&w->turn, &l->turns, work, w);
        turn_wait(&w->turn);
}

static void test_others_first(void) {
        Worker w;
        Loop l;

        loop_init(&l);
        worker_init(&w, &l, 'a', 2);
        l.turns.due_usec = UINT64_MAX;
        for (unsigned i = 0; i < 100; i++)
                loop_run(&l);
        g_assert_cmpuint(l.n_others, ==, 100);
        g_assert_cmpstr(l.taken->str, ==, "");
        (void) sd_event_source_set_enabled(l.other, SD_EVENT_OFF);
        loop_run(&l);
        g_assert_cmpstr(l.taken->str, ==, "a");
        turn_done(&w.turn);
        loop_done(&l);
}

static void test_due(void) {
        Worker first, second;
        Loop l;

        loop_init(&l);
        worker_init(&first, &l, 'a', 1);
        worker_init(&second, &l, 'b', 1);
        l.turns.due_usec = 0;
        loop_run(&l);
        g_assert_cmpstr(l.taken->str, ==, "a");
        g_assert_cmpuint(l.n_others, ==, 0);
        g_assert_cmpuint(l.turns.due_usec, >, 0); /* then the others have their time */
        while (l.taken->len < 2)
                loop_run(&l);
        loop_done(&l);
}

static void test_in_turns(void) {
        Worker workers[3];
        Loop l;

        loop_init(&l);
        (void) sd_event_source_set_enabled(l.other, SD_EVENT_OFF);
        for (unsigned i = 0; i < G_N_ELEMENTS(workers); i++)
                worker_init(&workers[i], &l, (char) ('a' + i), 3 - i);
        turn_wait(&workers[0].turn); /* it does already */
        for (unsigned i = 0; i < 6; i++)
                loop_run(&l);
        g_assert_cmpstr(l.taken->str, ==, "abcaba");
        for (unsigned i = 0; i < G_N_ELEMENTS(workers); i++)
                g_assert_false(workers[i].turn.waiting);
        loop_done(&l);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/turn/everything-else-comes-first", test_others_first);
        g_test_add_func("/turn/no-flood-keeps-it-from-its-turn", test_due);
        g_test_add_func("/turn/those-that-wait-take-turns", test_in_turns);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The probe while others come, leave and take turns, and CPUs come and go; and where looks take
 * long. */

#include "perf/pmu/test-probe-stage.h"

/* ---- looks that take long ---- */

static void test_slow(void) {
        Host h = {};

        host_boot(&h, "zen");
        for (uint64_t usec = 700; usec < 6000; usec += 900) {
                Storm all = { usec, UINT_MAX };
                Want want = { .shape = { .general = 6 } };
                _cleanup_(probe_freep) Probe *p = probe_of(&h, wants, &want);
                Strangers s = {};

                model_each_call(storm, &all);
                (void) probe_run(p);
                g_assert_true(probe_confirms(p));
                g_assert_cmpuint(model_n_open(), ==, 0);
                strangers_add(&s, &(ModelEvent){ "cycles", .cpu = 3, .pinned = true }, 1);
                g_assert_false(confirms_general(&h, 6));
                strangers_leave(&s);
                model_each_call(NULL, NULL);
        }
        host_halt(&h);
}

/* There are turns while a slow look opens its events. */
static void test_slow_turns(void) {
        Host h = {};

        host_boot(&h, "zen");
        for (unsigned i = 0; i < 200; i++) {
                Storm some = { (uint64_t) g_test_rand_int_range(0, 6000),
                               (unsigned) g_test_rand_int_range(20, 80) };
                unsigned n = 0, wanted = (unsigned) g_test_rand_int_range(1, 3);
                Strangers s = {};

                for (int groups = g_test_rand_int_range(1, 6); groups > 0; groups--) {
                        unsigned size = (unsigned) g_test_rand_int_range(1, 5);

                        strangers_add_group(&s, &(ModelEvent){ "cycles", .cpu = 1 }, size);
                        n += size;
                }
                model_pass((uint64_t) g_test_rand_int_range(0, 9000));
                model_each_call(storm, &some);
                g_assert_true(confirms_general(&h, wanted) == (n + wanted <= 6));
                model_each_call(NULL, NULL);
                strangers_leave(&s);
                model_pass((uint64_t) g_test_rand_int_range(0, 5000));
        }
        host_halt(&h);
}

/* Comes or leaves at one of the calls of a look, between two pauses of everything. */
typedef struct Passer {
        Strangers s;
        ModelEvent event;
        bool leaves, slow; /* slow: all other calls take as long as the pause */
        unsigned n_calls;  /* until then; 0: it is over */
        uint64_t pause_usec, when_usec;
} Passer;

static void pass_by(void *userdata) {
        Passer *p = userdata;

        if (p->slow)
                model_pass(p->pause_usec);
        if (p->n_calls == 0 || --p->n_calls > 0)
                return;
        model_pass(p->pause_usec);
        p->when_usec = kernel_now_usec();
        if (p->leaves)
                strangers_leave(&p->s);
        else
                strangers_add(&p->s, &p->event, 1);
        model_pass(p->pause_usec);
}

/* False: the look was over before. */
static bool is_free_while(const Host *h, Passer *p) {
        Look l = { .pmu = host_pmu(h, 0), .cpu = 1, .wanted = pmu_whole(host_pmu(h, 0)) };

        if (p->leaves)
                strangers_add(&p->s, &p->event, 1);
        p->when_usec = 0;
        model_each_call(pass_by, p);
        g_assert_cmpint(look_at(&l), ==, 0);
        model_each_call(NULL, NULL);
        if (p->when_usec > 0 && l.result == LOOK_FREE && p->leaves)
                g_assert_cmpuint(l.seen_usec + LOOK_SURE_USEC, >=, p->when_usec);
        else if (p->when_usec > 0 && l.result == LOOK_FREE)
                g_assert_cmpuint(l.seen_usec, <=, p->when_usec);
        strangers_leave(&p->s);
        return p->when_usec > 0;
}

/* However long a look takes: what it calls free was free when it says so. */
static void test_passers(gconstpointer name) {
        Host h = {};

        host_boot(&h, name);
        for (uint64_t pause = 0; pause <= 3 * MODEL_TURN_USEC; pause += MODEL_TURN_USEC / 2)
                for (unsigned kind = 0; kind < 4; kind++) {
                        Passer p = { .event = { "branches", .cpu = 1, .pinned = kind & 1 },
                                     .leaves = kind & 2,
                                     .pause_usec = pause };

                        for (unsigned n = 1; p.n_calls = n, is_free_while(&h, &p); n++)
                                model_pass(MODEL_TURN_USEC / 16);
                }
        host_halt(&h);
}

/* The same of all CPUs, whose looks are never together. False: the probe was over before. */
static bool is_confirmed_while(const Host *h, Passer *passer) {
        Want want = { .shape = { .general = 2 } };
        _cleanup_(probe_freep) Probe *p = probe_of(h, wants, &want);

        if (passer->leaves)
                strangers_add(&passer->s, &passer->event, 1);
        passer->when_usec = 0;
        model_each_call(pass_by, passer);
        (void) probe_run(p);
        model_each_call(NULL, NULL);
        if (passer->when_usec > 0 && probe_confirms(p) && passer->leaves)
                g_assert_cmpuint(probe_seen_usec(p) + LOOK_SURE_USEC, >=, passer->when_usec);
        else if (passer->when_usec > 0 && probe_confirms(p))
                g_assert_cmpuint(probe_seen_usec(p), <=, passer->when_usec);
        strangers_leave(&passer->s);
        return passer->when_usec > 0;
}

static void test_passers_of_probes(void) {
        Host h = {};

        host_boot(&h, "intel-0-fixed");
        for (unsigned kind = 0; kind < 8; kind++) {
                Passer p = { .event = { "branches", .cpu = kind & 1, .pinned = kind & 2 },
                             .leaves = kind & 4,
                             .slow = true,
                             .pause_usec = 300 };

                for (unsigned n = 1; p.n_calls = n, is_confirmed_while(&h, &p); n += 3)
                        ;
        }
        host_halt(&h);
}

/* Only the last event of each is opened between them, so nobody stays unseen for longer. */
static void test_slow_near(void) {
        Want want = { .shape = { .general = 6 } };
        _cleanup_(probe_freep) Probe *p = NULL;
        uint64_t first = UINT64_MAX, last = 0;
        Storm all = { 100, UINT_MAX };
        Host h = {};
        Look l;

        host_boot(&h, "zen");
        l = (Look){ .pmu = host_pmu(&h, 0), .cpu = 1, .wanted = want.shape };
        p = probe_of(&h, wants, &want);
        model_each_call(storm, &all);
        g_assert_cmpint(look_at(&l), ==, 0);
        g_assert_cmpint(probe_look(p, kernel_now_usec()), ==, PROBE_DONE);
        model_each_call(NULL, NULL);
        g_assert_true(probe_confirms(p));
        g_assert_cmpuint(model_n_open(), ==, 0);
        for (unsigned cpu = 0; cpu < h.machine->n_cpus; cpu++) {
                first = MIN(first, cpu_of(p, cpu)->seen_usec);
                last = MAX(last, cpu_of(p, cpu)->seen_usec);
        }
        g_assert_cmpuint(last - first, <, (h.machine->n_cpus - 1) * l.took_usec * 2 / 3);
        host_halt(&h);
}

/* Not more often, as they would be no nearer to one another. */
static void test_slow_twice(void) {
        Want want = { .shape = { .general = 6 } };
        _cleanup_(probe_freep) Probe *p = NULL;
        Storm all = { 300, UINT_MAX };
        Host h = {};

        host_boot(&h, "zen");
        model_set_online(2, false);
        p = probe_of(&h, wants, &want);
        model_each_call(storm, &all);
        g_assert_cmpint(probe_look(p, kernel_now_usec()), ==, PROBE_DONE);
        model_each_call(NULL, NULL);
        g_assert_true(probe_confirms(p));
        g_assert_cmpuint(want.n_asked, ==, 2 * p->n_looks);
        host_halt(&h);
}

/* Something else runs while those of a round are made that could be near to one another. */
typedef struct Pause {
        const Want *want;
        unsigned n_asked; /* the round has begun */
        unsigned n_calls; /* of it, until then */
} Pause;

static void pause_once(void *userdata) {
        Pause *p = userdata;

        model_pass(16);
        if (p->want->n_asked >= p->n_asked && p->n_calls > 0 && --p->n_calls == 0)
                model_pass(5000);
}

static void test_slow_apart(void) {
        Want want = { .shape = { .general = 6 } };
        _cleanup_(probe_freep) Probe *p = NULL;
        Pause pause = { .want = &want };
        uint64_t first = UINT64_MAX, last = 0;
        Host h = {};

        host_boot(&h, "zen");
        p = probe_of(&h, wants, &want);
        pause.n_asked = 2 * (unsigned) p->n_looks;
        /* all are ready, those that are offline after one call, and one look is made */
        pause.n_calls = (unsigned) p->n_looks + 4 * h.machine->n_cpus + 13;
        model_each_call(pause_once, &pause);
        g_assert_cmpint(probe_look(p, kernel_now_usec()), ==, PROBE_DONE);
        model_each_call(NULL, NULL);
        g_assert_cmpuint(pause.n_calls, ==, 0);
        g_assert_true(probe_confirms(p));
        for (unsigned cpu = 0; cpu < h.machine->n_cpus; cpu++) {
                first = MIN(first, cpu_of(p, cpu)->seen_usec);
                last = MAX(last, cpu_of(p, cpu)->seen_usec);
        }
        g_assert_cmpuint(last - first, <=, PROBE_APART_USEC + h.machine->n_cpus * LOOK_TAKES_USEC);
        g_assert_cmpuint(model_n_open(), ==, 0);
        host_halt(&h);
}

/* There are enough for a look, but not for all of them to be made ready. */
static void test_slow_with_few_descriptors(void) {
        Host h = {};

        host_boot(&h, "zen");
        for (unsigned limit = 6; limit <= 4 * 6; limit++) {
                Storm all = { 300, UINT_MAX };

                model_limit(limit);
                model_each_call(storm, &all);
                g_assert_true(confirms_general(&h, 6));
                model_each_call(NULL, NULL);
        }
        host_halt(&h);
}

/* What is open there is never on again, so it proves nothing. */
static void test_ready_cpu_went(void) {
        Host h = {};
        Strangers s = {};
        Look l;

        host_boot(&h, "zen");
        l = (Look){ .pmu = host_pmu(&h, 0), .cpu = 1, .wanted = { .general = 6 } };
        for (unsigned n_strangers = 0; n_strangers < 2; n_strangers++) {
                g_assert_cmpint(look_ready(&l), ==, 0);
                model_set_online(1, false);
                model_set_online(1, true);
                strangers_add(&s, &(ModelEvent){ "cycles", .cpu = 1 }, n_strangers);
                g_assert_cmpint(look_at(&l), ==, 0);
                g_assert_cmpint(l.result, ==, n_strangers > 0 ? LOOK_TAKEN : LOOK_FREE);
                g_assert_cmpint(look_close(&l), ==, 0);
        }
        strangers_leave(&s);
        host_halt(&h);
}

/* ---- what changes meanwhile ---- */

/* Something that happens at a time. */
typedef struct Change {
        uint64_t usec;
        void (*f)(struct Change *c);
        Strangers *strangers;
        bool done;
} Change;

typedef struct Changes {
        Change *changes;
        size_t n;
} Changes;

static void changes_happen(void *userdata) {
        const Changes *all = userdata;

        for (size_t i = 0; i < all->n; i++) {
                Change *c = &all->changes[i];

                if (c->done || kernel_now_usec() < c->usec)
                        continue;
                c->done = true;
                c->f(c);
        }
}

static void leave(Change *c) {
        strangers_leave(c->strangers);
}

static void take_first(Change *c) {
        strangers_add(c->strangers, &(ModelEvent){ "cycles", .cpu = 0, .pinned = true }, 6);
}

static void take_last(Change *c) {
        strangers_add(c->strangers, &(ModelEvent){ "cycles", .cpu = 3, .pinned = true }, 6);
}

static void first_offline(Change *c) {
        model_set_online(0, false);
}

static void last_online(Change *c) {
        model_set_online(3, true);
}

typedef struct Move {
        Probe *p;
        Strangers s;
        bool done;
} Move;

/* The thread under test is preempted after it has seen CPU 0, and there the stranger is next. */
static void move_to_what_was_seen(void *userdata) {
        Move *m = userdata;

        if (m->done || m->p->looks[0].result != LOOK_FREE)
                return;
        m->done = true;
        model_pass(3000);
        strangers_leave(&m->s);
        strangers_add(&m->s, &(ModelEvent){ "cycles", .cpu = 0, .pinned = true }, 6);
}

static void test_looks_apart(void) {
        Want want = { .shape = { .general = 6 } };
        Move m = {};
        Host h = {};

        host_boot(&h, "zen");
        model_put(2, UINT32_MAX);
        strangers_add(&m.s, &(ModelEvent){ "cycles", .cpu = 1, .pinned = true }, 6);
        m.p = probe_of(&h, wants, &want);
        model_each_call(move_to_what_was_seen, &m);
        (void) probe_run(m.p);
        model_each_call(NULL, NULL);
        g_assert_true(m.done);
        g_assert_false(probe_confirms(m.p));
        m.p = probe_free(m.p);
        strangers_leave(&m.s);
        host_halt(&h);
}

/* Leaves when the last look is over, and before it is found out what there is. */
typedef struct LateLeaver {
        Strangers s;
        uint64_t last_usec;
        size_t n_open;
        bool looked;
} LateLeaver;

static void leave_after_last_look(void *userdata) {
        LateLeaver *l = userdata;

        if (kernel_now_usec() < l->last_usec)
                return;
        if (l->looked && model_n_open() == l->n_open)
                strangers_leave(&l->s);
        l->looked |= model_n_open() > l->n_open;
}

static void test_leaves_last(void) {
        Want want = { .shape = { .general = 6 } };
        _cleanup_(probe_freep) Probe *p = NULL;
        LateLeaver l = {};
        Host h = {};

        host_boot(&h, "zen");
        model_put(2, UINT32_MAX);
        strangers_add(&l.s, &(ModelEvent){ "cycles", .cpu = 1, .pinned = true }, 6);
        l.n_open = model_n_open();
        l.last_usec = kernel_now_usec() + PROBE_WATCH_USEC;
        p = probe_of(&h, wants, &want);
        model_each_call(leave_after_last_look, &l);
        (void) probe_run(p);
        model_each_call(NULL, NULL);
        g_assert_cmpuint(l.s.n, ==, 0);
        g_assert_true(probe_confirms(p));
        host_halt(&h);
}

/* A stranger is on CPU 1 for some milliseconds. */
static bool confirmed_beside(Change *change, size_t n, bool three_cpus, uint64_t stays_usec,
                             uint64_t *ret_took) {
        Want want = { .shape = { .general = 6 } };
        Strangers s = {};
        Change all[4] = { { .f = leave, .strangers = &s } };
        Changes changes = { all, n + 1 };
        _cleanup_(probe_freep) Probe *p = NULL;
        uint64_t begun, took;
        bool confirmed;
        Host h = {};

        host_boot(&h, "zen");
        model_put(2, UINT32_MAX);
        model_set_online(3, !three_cpus);
        strangers_add(&s, &(ModelEvent){ "cycles", .cpu = 1, .pinned = true }, 6);
        begun = kernel_now_usec();
        all[0].usec = begun + stays_usec;
        for (size_t i = 0; i < n; i++) {
                all[i + 1] = change[i];
                all[i + 1].usec += begun;
        }
        p = probe_of(&h, wants, &want);
        model_each_call(changes_happen, &changes);
        took = probe_run(p);
        model_each_call(NULL, NULL);
        confirmed = probe_confirms(p);
        if (confirmed)
                g_assert_cmpuint(probe_seen_usec(p), >=, begun + stays_usec);
        if (ret_took)
                *ret_took = took;
        for (size_t i = 0; i < n; i++)
                if (all[i + 1].strangers)
                        strangers_leave(all[i + 1].strangers);
        strangers_leave(&s);
        host_halt(&h);
        return confirmed;
}

static void test_waits(void) {
        uint64_t took;

        g_assert_true(confirmed_beside(NULL, 0, false, 20 * USEC_PER_MSEC, &took));
        g_assert_cmpuint(took, <=, PROBE_WATCH_USEC);
        g_assert_true(confirmed_beside(NULL, 0, false, 1, &took));
        g_assert_cmpuint(took, <, 2 * PROBE_STEP_USEC);
        g_assert_false(confirmed_beside(NULL, 0, false, USEC_PER_SEC, &took));
        g_assert_cmpuint(took, >=, PROBE_WATCH_USEC);
        g_assert_cmpuint(took, <, 2 * PROBE_WATCH_USEC);
}

/* Somebody takes CPU 0, which was free at the first look, while CPU 1 is watched. */
static void test_stale_look(void) {
        Strangers s = {};
        Change change = { .usec = 5000, .f = take_first, .strangers = &s };

        g_assert_false(confirmed_beside(&change, 1, false, 20 * USEC_PER_MSEC, NULL));
}

static void test_cpu_comes(void) {
        Strangers s = {};
        Change comes = { .usec = 5000, .f = last_online };
        Change both[] = { comes, { .usec = 5500, .f = take_last, .strangers = &s } };

        g_assert_true(confirmed_beside(&comes, 1, true, 20 * USEC_PER_MSEC, NULL));
        g_assert_false(confirmed_beside(both, 2, true, 20 * USEC_PER_MSEC, NULL));
}

static void test_cpu_goes(void) {
        Strangers s = {};
        Change goes = { .usec = 5000, .f = first_offline };
        Change taken[] = { { .usec = 3000, .f = take_first, .strangers = &s }, goes };

        g_assert_true(confirmed_beside(&goes, 1, false, 20 * USEC_PER_MSEC, NULL));
        g_assert_true(confirmed_beside(taken, 2, false, 20 * USEC_PER_MSEC, NULL));
}

/* Nothing was measured. */
static void test_offline(void) {
        Want want = { .shape = { .general = 1 } };
        _cleanup_(probe_freep) Probe *p = NULL;
        Host h = {};

        host_boot(&h, "zen");
        for (unsigned cpu = 0; cpu < 4; cpu++)
                model_set_online(cpu, false);
        p = probe_of(&h, wants, &want);
        (void) probe_run(p);
        g_assert_true(probe_is_offline(p));
        g_assert_false(probe_confirms(p));
        host_halt(&h);
}

static void test_wants_are_asked_anew(void) {
        Want want = { .shape = { .general = 6 } };
        _cleanup_(probe_freep) Probe *p = NULL;
        Strangers s = {};
        Host h = {};
        unsigned asked;

        host_boot(&h, "zen");
        strangers_add(&s, &(ModelEvent){ "cycles", .cpu = 1, .pinned = true }, 2);
        p = probe_of(&h, wants, &want);
        g_assert_cmpint(probe_look(p, kernel_now_usec()), ==, PROBE_AGAIN);
        asked = want.n_asked;
        g_assert_cmpint(probe_look(p, p->next_usec - 1), ==, PROBE_AGAIN);
        g_assert_cmpuint(want.n_asked, ==, asked);
        want.shape.general = 4;
        model_pass(PROBE_STEP_USEC);
        g_assert_cmpint(probe_look(p, p->next_usec), ==, PROBE_DONE);
        g_assert_true(probe_confirms(p));
        strangers_leave(&s);
        host_halt(&h);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/probe-changes/slow-is-not-taken", test_slow);
        g_test_add_func("/probe-changes/slow-looks-see-who-takes-turns", test_slow_turns);
        g_test_add_data_func("/probe-changes/slow-looks-say-when-it-was", "intel", test_passers);
        g_test_add_data_func("/probe-changes/slow-looks-say-when-it-was-without-fixed-ones", "zen",
                             test_passers);
        g_test_add_func("/probe-changes/slow-looks-are-near-to-one-another", test_slow_near);
        g_test_add_func("/probe-changes/slow-looks-are-made-twice", test_slow_twice);
        g_test_add_func("/probe-changes/slow-looks-that-were-far-apart-are-made-again",
                        test_slow_apart);
        g_test_add_func("/probe-changes/slow-looks-with-few-descriptors",
                        test_slow_with_few_descriptors);
        g_test_add_func("/probe-changes/a-cpu-that-went-when-all-was-ready", test_ready_cpu_went);
        g_test_add_func("/probe-changes/slow-looks-at-all-say-when-it-was", test_passers_of_probes);
        g_test_add_func("/probe-changes/looks-that-were-far-apart-are-made-again",
                        test_looks_apart);
        g_test_add_func("/probe-changes/waits-for-those-who-leave", test_waits);
        g_test_add_func("/probe-changes/sees-who-leaves-after-the-last-look", test_leaves_last);
        g_test_add_func("/probe-changes/an-old-look-proves-nothing", test_stale_look);
        g_test_add_func("/probe-changes/a-cpu-that-comes-is-measured", test_cpu_comes);
        g_test_add_func("/probe-changes/a-cpu-that-goes-is-in-nobodys-way", test_cpu_goes);
        g_test_add_func("/probe-changes/a-machine-of-cpus-that-are-offline", test_offline);
        g_test_add_func("/probe-changes/what-is-wanted-is-asked-anew", test_wants_are_asked_anew);
        return g_test_run();
}

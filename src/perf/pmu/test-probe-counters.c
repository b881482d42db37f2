/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The probe on machines that nobody has at hand; test-probe.c has it on breakpoints. */

#include "perf/pmu/probe.h"
#include "perf/pmu/test-model.h"

#define STRANGERS_MAX 64u

/* ---- strangers ---- */

typedef struct Strangers {
        size_t n;
        int fds[STRANGERS_MAX];
} Strangers;

static void strangers_add(Strangers *s, const ModelEvent *e, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                g_assert_cmpuint(s->n, <, STRANGERS_MAX);
                s->fds[s->n] = model_open(e);
                g_assert_cmpint(s->fds[s->n++], >=, 0);
        }
}

/* The same as one group, on all at once or not at all. */
static void strangers_add_group(Strangers *s, const ModelEvent *e, unsigned n) {
        ModelEvent member = *e;

        for (unsigned i = 0; i < n; i++) {
                strangers_add(s, &member, 1);
                if (i == 0)
                        member.leader = s->fds[s->n - 1];
        }
}

static void strangers_leave(Strangers *s) {
        while (s->n > 0)
                model_close(s->fds[--s->n]);
}

/* ---- probes ---- */

/* Each CPU the same, or one of them nothing. */
typedef struct Want {
        Shape shape;
        unsigned n_asked;
} Want;

static Shape wants(void *userdata, const Pmu *pmu, unsigned cpu) {
        Want *w = userdata;

        w->n_asked++;
        return w->shape;
}

static Shape wants_whole(void *userdata, const Pmu *pmu, unsigned cpu) {
        return pmu_whole(pmu);
}

static Probe *probe_of(const Host *h, ProbeWants f, void *userdata) {
        Probe *p;

        g_assert_cmpint(probe_new(f, userdata, &p), ==, 0);
        for (unsigned i = 0; i < host_n_pmus(h); i++) {
                const Pmu *pmu = host_pmu(h, i);

                g_assert_cmpint(probe_add(p, pmu, &pmu->cpus), ==, 0);
        }
        return p;
}

/* As the service does it: how long it took. */
static uint64_t probe_run(Probe *p) {
        uint64_t begun = kernel_now_usec(), now = begun;
        int r;

        while ((r = probe_look(p, now)) == PROBE_AGAIN) {
                g_assert_cmpuint(p->next_usec, >, now);
                g_assert_cmpuint(p->next_usec, <, now + USEC_PER_SEC);
                now = kernel_now_usec();
                if (now < p->next_usec)
                        model_pass(p->next_usec - now);
                now = kernel_now_usec();
        }
        g_assert_cmpint(r, ==, PROBE_DONE);
        return kernel_now_usec() - begun;
}

static const Look *cpu_of(const Probe *p, unsigned cpu) {
        for (size_t i = 0; i < p->n_looks; i++)
                if (p->looks[i].cpu == cpu)
                        return &p->looks[i];
        g_assert_not_reached();
}

/* Whether so much is confirmed, on all CPUs; found is what was free on one of them. */
static bool confirms(const Host *h, Shape shape, unsigned cpu, Shape *ret_found) {
        Want want = { .shape = shape };
        _cleanup_(probe_freep) Probe *p = probe_of(h, wants, &want);
        size_t before = model_n_open();

        (void) probe_run(p);
        g_assert_cmpuint(model_n_open(), ==, before);
        if (ret_found)
                *ret_found = cpu_of(p, cpu)->free;
        return probe_confirms(p);
}

static bool confirms_general(const Host *h, unsigned n) {
        return confirms(h, (Shape){ .general = n }, 0, NULL);
}

/* ---- what is free is confirmed ---- */

static void test_free(gconstpointer name) {
        Host h = {};
        _cleanup_(probe_freep) Probe *p = NULL;
        uint64_t begun;

        host_boot(&h, name);
        p = probe_of(&h, wants_whole, NULL);
        begun = kernel_now_usec();
        g_assert_cmpint(probe_look(p, begun), ==, PROBE_DONE);
        g_assert_true(probe_confirms(p));
        g_assert_false(probe_is_alone(p));
        g_assert_cmpuint(probe_seen_usec(p), >=, begun);
        g_assert_cmpuint(probe_seen_usec(p), <=, kernel_now_usec());
        g_assert_cmpuint(model_n_open(), ==, 0);
        host_halt(&h);
}

static void test_unknown(void) {
        Host h = {};
        _cleanup_(probe_freep) Probe *p = NULL;

        host_boot(&h, "riscv");
        p = probe_of(&h, wants_whole, NULL);
        g_assert_cmpint(probe_look(p, kernel_now_usec()), ==, PROBE_DONE);
        g_assert_false(probe_confirms(p));
        g_assert_true(p->unknown);
        host_halt(&h);
}

/* ---- what is not free is not ---- */

static const struct {
        const char *name, *machine;
        ModelEvent event;
        unsigned n;
        unsigned free;  /* general ones, beside them */
        uint32_t taken; /* fixed ones, in the order of Intel's, or arm64's one */
} strangers[] = {
        { "pins-all", "intel", { "branches", .pinned = true }, 4, 0 },
        { "pins-all-instructions", "arm-qemu", { "instructions", .pinned = true }, 6, 0 },
        { "pins-one", "zen", { "cycles", .pinned = true }, 1, 5 },
        { "counts-one", "zen", { "cycles" }, 1, 5 },
        { "has-its-own", "intel", { "cycles", .pinned = true }, 1, 4, 2 },
        { "has-its-own-and-another", "intel", { "cycles" }, 2, 3, 2 },
        { "has-one-that-is-alone", "intel", { "ref-cycles" }, 1, 4, 4 },
        /* behind a flexible one that waits the kernel tries no other */
        { "shares-one-that-is-alone", "intel", { "ref-cycles" }, 2, 0, 7 },
        { "takes-turns", "zen", { "instructions" }, 9, 0 },
        { "takes-turns-for-fixed-too", "arm", { "cycles" }, 9, 0, 1 },
        { "takes-two-each", "arm", { "long-branches", .pinned = true }, 2, 2 },
        { "runs-with-pinned", "zen", { "cycles", .task = 7, .pinned = true }, 6, 0 },
        { "runs-with-two-pinned",
          "golden-cove",
          { "branches", .task = 7, .pinned = true },
          2,
          6,
          0 },
        { "is-on-the-other-pmu", "hybrid", { "instructions", .cpu = 17 }, 7, 0, 1 },
};

static void test_stranger(gconstpointer data) {
        const unsigned k = GPOINTER_TO_UINT(data), cpu = strangers[k].event.cpu;
        Strangers s = {};
        Shape whole, found;
        const Pmu *pmu;
        Host h = {};

        host_boot(&h, strangers[k].machine);
        pmu = host_pmu(&h, cpu > 15);
        whole = pmu_whole(pmu);
        model_run(cpu, strangers[k].event.task);
        strangers_add(&s, &strangers[k].event, strangers[k].n);

        g_assert_false(confirms(&h, whole, cpu, &found));
        g_assert_cmpuint(found.general, ==, strangers[k].free);
        g_assert_cmphex(whole.fixed & ~found.fixed, ==, strangers[k].taken);
        g_assert_false(confirms_general(&h, strangers[k].free + 1));
        if (strangers[k].free > 0)
                g_assert_true(confirms_general(&h, strangers[k].free));
        for (size_t i = 0; i < s.n; i++)
                g_assert_false(model_is_dropped(s.fds[i]));
        strangers_leave(&s);
        g_assert_true(confirms_general(&h, host_pmu(&h, host_n_pmus(&h) - 1)->counters));
        host_halt(&h);
}

/* At whatever moment it is looked: a rotation puts others behind the probe's own group. */
static void test_turns(gconstpointer group) {
        const ModelEvent e = { "cycles", .cpu = 1 };
        Strangers s = {};
        Host h = {};

        host_boot(&h, "zen");
        strangers_add_group(&s, &e, GPOINTER_TO_UINT(group));
        strangers_add(&s, &e, 7 - GPOINTER_TO_UINT(group));
        for (unsigned i = 0; i < 3000; i++) {
                Shape found;

                g_assert_cmpint(probe_free_now(host_pmu(&h, 0), 1, (Shape){ .general = 1 }, &found),
                                ==, 0);
                g_assert_cmpuint(found.general, ==, 0);
                model_pass(7);
        }
        strangers_leave(&s);
        host_halt(&h);
}

/* ---- busy machines ---- */

static void test_busy(gconstpointer allowed) {
        Host h = {};
        Shape whole;

        host_boot(&h, "zen");
        whole = pmu_whole(host_pmu(&h, 0));
        for (unsigned cpu = 0; cpu < h.machine->n_cpus; cpu++)
                model_run(cpu, 1 + cpu);
        model_put(1, GPOINTER_TO_UINT(allowed));
        for (unsigned i = 0; i < 20; i++) {
                g_assert_true(confirms(&h, whole, 0, NULL));
                model_pass(1300);
        }
        host_halt(&h);
}

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

/* The task of the service's own CPU is off it just while the service runs there. */
static void test_own_cpu(void) {
        Strangers s = {};
        Host h = {};

        host_boot(&h, "zen");
        for (unsigned cpu = 0; cpu < h.machine->n_cpus; cpu++) {
                model_put(cpu, UINT32_MAX);
                model_run(cpu, 7);
                strangers_add(&s, &(ModelEvent){ "cycles", cpu, 7, .pinned = true }, 6);
                g_assert_false(confirms_general(&h, 1));
                strangers_leave(&s);
                model_run(cpu, 0);
                g_assert_true(confirms_general(&h, 6));
        }
        host_halt(&h);
}

/* Who opens the events for this thread is on the CPU that is looked at, and its task is not. */
static void test_openers_cpu(void) {
        Strangers s = {};
        Host h = {};

        host_boot(&h, "zen");
        model_put(0, UINT32_MAX);
        for (unsigned cpu = 1; cpu < h.machine->n_cpus; cpu++) {
                model_put_opener(cpu);
                model_run(cpu, 7);
                strangers_add(&s, &(ModelEvent){ "cycles", cpu, 7, .pinned = true }, 6);
                g_assert_false(confirms_general(&h, 1));
                strangers_leave(&s);
                g_assert_true(confirms_general(&h, 6));
                model_run(cpu, 0);
        }
        host_halt(&h);
}

static void test_only_cpu(void) {
        Want want = { .shape = { .general = 1 } };
        Strangers s = {};
        Host h = {};

        host_boot(&h, "zen");
        model_put(2, 1u << 2);
        for (unsigned busy = 0; busy < 2; busy++) {
                _cleanup_(probe_freep) Probe *p = probe_of(&h, wants, &want);

                if (busy) {
                        model_run(2, 7);
                        strangers_add(&s, &(ModelEvent){ "cycles", 2, 7, .pinned = true }, 6);
                }
                (void) probe_run(p);
                g_assert_true(probe_is_alone(p));
                g_assert_true(cpu_of(p, 2)->alone);
                g_assert_false(cpu_of(p, 1)->alone);
                g_assert_true(probe_confirms(p) == !busy);
        }
        strangers_leave(&s);
        host_halt(&h);
}

/* All other CPUs are those of tasks of real time: nobody waits there for ever. */
static void test_no_time_elsewhere(void) {
        Want want = { .shape = { .general = 6 } };
        _cleanup_(probe_freep) Probe *p = NULL;
        Host h = {};

        host_boot(&h, "zen");
        model_put(0, UINT32_MAX);
        for (unsigned cpu = 1; cpu < h.machine->n_cpus; cpu++)
                model_hog(cpu, 9);
        p = probe_of(&h, wants, &want);
        g_assert_cmpuint(probe_run(p), <, 2 * KERNEL_ELSEWHERE_USEC);
        g_assert_true(probe_confirms(p));
        g_assert_true(probe_is_alone(p));
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

/* Counters that a sibling thread makes unusable are there when a group is validated. */
static void test_blocked(void) {
        Host h = {};
        Shape found;

        host_boot(&h, "intel");
        model_block(1, 2);
        g_assert_false(confirms(&h, pmu_whole(host_pmu(&h, 0)), 1, &found));
        g_assert_cmpuint(found.general, ==, 2);
        host_halt(&h);
}

/* All is free there, and is found so at once. */
static void test_dozing(void) {
        _cleanup_(probe_freep) Probe *p = NULL;
        Host h = {};

        host_boot(&h, "intel");
        model_doze(1);
        p = probe_of(&h, wants_whole, NULL);
        g_assert_cmpint(probe_look(p, kernel_now_usec()), ==, PROBE_DONE);
        g_assert_true(probe_confirms(p));
        g_assert_cmpuint(model_n_open(), ==, 0);
        host_halt(&h);
}

/* ---- histories ---- */

#define HISTORIES 300

/* What is left when all who count now are to be on at once: the promise as design.md has it, by
 * counting them. */
typedef struct Census {
        unsigned general, cycles;
} Census;

static void census_add(Census *c, const char *name, unsigned n) {
        if (strcmp(name, "cycles") == 0 && c->cycles == 0 && n > 0) {
                c->cycles = 1;
                n--;
        }
        c->general += n;
}

static void history(void) {
        Census census[4] = {};
        Strangers s = {};
        unsigned wanted;
        bool all_free = true;
        Host h = {};

        host_boot(&h, "arm");
        model_put((unsigned) g_test_rand_int_range(0, 4), UINT32_MAX);
        wanted = (unsigned) g_test_rand_int_range(1, 7);
        for (unsigned cpu = 0; cpu < 4; cpu++) {
                const ModelEvent e = {
                        .name = g_test_rand_bit() ? "cycles" : "instructions",
                        .cpu = cpu,
                        .task = g_test_rand_bit() ? 7 : 0,
                        .pinned = true,
                };
                const ModelEvent f = { .name = g_test_rand_bit() ? "cycles" : "branches",
                                       .cpu = cpu };
                unsigned n = (unsigned) g_test_rand_int_range(0, 5),
                         m = (unsigned) g_test_rand_int_range(0, 5);

                model_run(cpu, g_test_rand_bit() ? 7 : 0);
                if (e.task != 0)
                        model_run(cpu, 7);
                strangers_add(&s, &e, n);
                strangers_add(&s, &f, m);
                census_add(&census[cpu], e.name, n);
                census_add(&census[cpu], f.name, m);
                all_free &= census[cpu].general + wanted <= 6;
        }
        model_pass((uint64_t) g_test_rand_int_range(0, 9000));
        g_assert_true(confirms_general(&h, wanted) == all_free);
        for (size_t i = 0; i < s.n; i++)
                g_assert_false(model_is_dropped(s.fds[i]));
        strangers_leave(&s);
        host_halt(&h);
}

static void test_histories(void) {
        for (unsigned i = 0; i < HISTORIES; i++)
                history();
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < model_n_machines; i++) {
                g_autofree char *path =
                        g_strdup_printf("/probe-counters/free/%s", model_machines[i].name);

                if (!model_machines[i].pmus[0].takes_all)
                        g_test_add_data_func(path, model_machines[i].name, test_free);
        }
        for (unsigned i = 0; i < G_N_ELEMENTS(strangers); i++) {
                g_autofree char *path =
                        g_strdup_printf("/probe-counters/a-stranger-%s", strangers[i].name);

                g_test_add_data_func(path, GUINT_TO_POINTER(i), test_stranger);
        }
        g_test_add_func("/probe-counters/without-validation-nothing-is-confirmed", test_unknown);
        g_test_add_data_func("/probe-counters/seven-take-turns", GUINT_TO_POINTER(1), test_turns);
        g_test_add_data_func("/probe-counters/a-group-and-others-take-turns", GUINT_TO_POINTER(4),
                             test_turns);
        g_test_add_data_func("/probe-counters/busy-is-not-taken", GUINT_TO_POINTER(UINT32_MAX),
                             test_busy);
        g_test_add_data_func("/probe-counters/busy-is-not-taken-with-one-cpu-to-be-on",
                             GUINT_TO_POINTER(1u << 1), test_busy);
        g_test_add_func("/probe-counters/slow-is-not-taken", test_slow);
        g_test_add_func("/probe-counters/slow-looks-see-who-takes-turns", test_slow_turns);
        g_test_add_data_func("/probe-counters/slow-looks-say-when-it-was", "intel", test_passers);
        g_test_add_data_func("/probe-counters/slow-looks-say-when-it-was-without-fixed-ones", "zen",
                             test_passers);
        g_test_add_func("/probe-counters/slow-looks-are-made-twice", test_slow_twice);
        g_test_add_func("/probe-counters/slow-looks-at-all-say-when-it-was",
                        test_passers_of_probes);
        g_test_add_func("/probe-counters/looks-that-were-far-apart-are-made-again",
                        test_looks_apart);
        g_test_add_func("/probe-counters/the-own-cpu-is-seen-from-another", test_own_cpu);
        g_test_add_func("/probe-counters/the-openers-cpu-is-seen-without-it", test_openers_cpu);
        g_test_add_func("/probe-counters/without-another-it-says-so", test_only_cpu);
        g_test_add_func("/probe-counters/without-time-elsewhere-it-says-so",
                        test_no_time_elsewhere);
        g_test_add_func("/probe-counters/waits-for-those-who-leave", test_waits);
        g_test_add_func("/probe-counters/sees-who-leaves-after-the-last-look", test_leaves_last);
        g_test_add_func("/probe-counters/an-old-look-proves-nothing", test_stale_look);
        g_test_add_func("/probe-counters/a-cpu-that-comes-is-measured", test_cpu_comes);
        g_test_add_func("/probe-counters/a-cpu-that-goes-is-in-nobodys-way", test_cpu_goes);
        g_test_add_func("/probe-counters/what-is-wanted-is-asked-anew", test_wants_are_asked_anew);
        g_test_add_func("/probe-counters/blocked-counters-are-not-free", test_blocked);
        g_test_add_func("/probe-counters/a-cpu-that-starts-nothing-is-woken", test_dozing);
        g_test_add_func("/probe-counters/histories", test_histories);
        return g_test_run();
}

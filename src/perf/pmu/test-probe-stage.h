/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests of the probe on the model: others who have events open, and probes that are run to
 * their end.
 */

#include "perf/pmu/probe.h"
#include "perf/pmu/test-model.h"

#define STRANGERS_MAX 64u

/* ---- strangers ---- */

typedef struct Strangers {
        size_t n;
        int fds[STRANGERS_MAX];
} Strangers;

_unused_ static void strangers_add(Strangers *s, const ModelEvent *e, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                g_assert_cmpuint(s->n, <, STRANGERS_MAX);
                s->fds[s->n] = model_open(e);
                g_assert_cmpint(s->fds[s->n++], >=, 0);
        }
}

/* The same as one group, on all at once or not at all. */
_unused_ static void strangers_add_group(Strangers *s, const ModelEvent *e, unsigned n) {
        ModelEvent member = *e;

        for (unsigned i = 0; i < n; i++) {
                strangers_add(s, &member, 1);
                if (i == 0)
                        member.leader = s->fds[s->n - 1];
        }
}

_unused_ static void strangers_leave(Strangers *s) {
        while (s->n > 0)
                model_close(s->fds[--s->n]);
}

/* ---- probes ---- */

/* Each CPU the same, or one of them nothing. */
typedef struct Want {
        Shape shape;
        unsigned n_asked;
} Want;

_unused_ static Shape wants(void *userdata, const Pmu *pmu, unsigned cpu) {
        Want *w = userdata;

        w->n_asked++;
        return w->shape;
}

_unused_ static Shape wants_whole(void *userdata, const Pmu *pmu, unsigned cpu) {
        return pmu_whole(pmu);
}

_unused_ static Probe *probe_of(const Host *h, ProbeWants f, void *userdata) {
        Probe *p;

        g_assert_cmpint(probe_new(f, userdata, &p), ==, 0);
        for (unsigned i = 0; i < host_n_pmus(h); i++) {
                const Pmu *pmu = host_pmu(h, i);

                g_assert_cmpint(probe_add(p, pmu, &pmu->cpus), ==, 0);
        }
        return p;
}

/* As the service does it: how long it took. */
_unused_ static uint64_t probe_run(Probe *p) {
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

_unused_ static const Look *cpu_of(const Probe *p, unsigned cpu) {
        for (size_t i = 0; i < p->n_looks; i++)
                if (p->looks[i].cpu == cpu)
                        return &p->looks[i];
        g_assert_not_reached();
}

/* Whether so much is confirmed, on all CPUs; found is what was free on one of them. */
_unused_ static bool confirms(const Host *h, Shape shape, unsigned cpu, Shape *ret_found) {
        Want want = { .shape = shape };
        _cleanup_(probe_freep) Probe *p = probe_of(h, wants, &want);
        size_t before = model_n_open();

        (void) probe_run(p);
        g_assert_cmpuint(model_n_open(), ==, before);
        if (ret_found)
                *ret_found = cpu_of(p, cpu)->free;
        return probe_confirms(p);
}

_unused_ static bool confirms_general(const Host *h, unsigned n) {
        return confirms(h, (Shape){ .general = n }, 0, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trial.h"

#define NO_TASK (-1)

struct perf_event_attr trial_attr(const PmuEvent *e) {
        return (struct perf_event_attr){
                .size = sizeof(struct perf_event_attr),
                .type = e->type,
                .config = e->config,
                .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        };
}

bool trial_is_our_fault(int error) {
        return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

/* Who is disabled is not counted when the kernel looks whether a group fits: on x86 a member, on
 * arm64 (validate_event() of drivers/perf/arm_pmu.c) the leader too, unless an exec is to enable
 * it; nothing execs here. */
static void attr_set_leader(struct perf_event_attr *attr, bool leads) {
        attr->disabled = leads;
        attr->enable_on_exec = leads;
}

/* Kernels before 6.6 know no extended type on arm64; there a plain event, on a CPU, is that CPU's.
 * Whether the attr had such a type. */
static bool attr_make_plain(struct perf_event_attr *attr) {
        if (attr->type != PERF_TYPE_HARDWARE || attr->config <= UINT32_MAX)
                return false;
        attr->config &= UINT32_MAX;
        return true;
}

static int trial_open_one(Trial *t, struct perf_event_attr attr, unsigned cpu, int leader) {
        int fd;

        if (t->n == TRIAL_MAX)
                return -E2BIG;
        fd = kernel_open(&attr, NO_TASK, (int) cpu, leader);
        if (fd == -ENOENT && attr_make_plain(&attr))
                fd = kernel_open(&attr, NO_TASK, (int) cpu, leader);
        if (fd < 0)
                return fd;
        t->fds[t->n++] = fd;
        return 0;
}

int trial_add(Trial *t, const struct perf_event_attr *event, unsigned cpu) {
        struct perf_event_attr attr = *event;

        attr_set_leader(&attr, t->n == 0);
        return trial_open_one(t, attr, cpu, t->n == 0 ? -1 : t->fds[0]);
}

int trial_add_event(Trial *t, const PmuEvent *e, unsigned cpu) {
        const struct perf_event_attr attr = trial_attr(e);

        return trial_add(t, &attr, cpu);
}

/* False: there are more than TRIAL_MAX. */
static bool shape_attrs(const Pmu *pmu, Shape shape, struct perf_event_attr *ret, unsigned *ret_n) {
        unsigned n = 0;

        if (shape_size(shape) > TRIAL_MAX)
                return false;
        for (unsigned i = 0; i < shape.general; i++)
                ret[n++] = trial_attr(&pmu->general);
        for (unsigned i = 0; i < pmu->n_fixed; i++)
                if (shape.fixed & (UINT32_C(1) << i))
                        ret[n++] = trial_attr(&pmu->fixed[i]);
        *ret_n = n;
        return true;
}

/* All but the last n_later. */
static int trial_open(Trial *t, const Pmu *pmu, Shape shape, unsigned cpu, bool counting,
                      unsigned n_later) {
        int (*open)(const struct perf_event_attr *, unsigned, unsigned, int *) =
                counting ? kernel_open_counting : kernel_open_group;
        struct perf_event_attr attrs[TRIAL_MAX];
        bool plain = false;
        unsigned n;
        int r;

        t->n = 0;
        if (!shape_attrs(pmu, shape, attrs, &n))
                return -E2BIG;
        n -= MIN(n, n_later);
        for (unsigned i = 0; i < n; i++)
                attr_set_leader(&attrs[i], i == 0 && !(counting && n == 1));
        r = open(attrs, n, cpu, t->fds);
        for (unsigned i = 0; r == -ENOENT && i < n; i++)
                plain |= attr_make_plain(&attrs[i]);
        if (plain)
                r = open(attrs, n, cpu, t->fds);
        if (r == 0)
                t->n = n;
        return r;
}

int trial_open_group(Trial *t, const Pmu *pmu, Shape shape, unsigned cpu) {
        return trial_open(t, pmu, shape, cpu, false, 0);
}

int trial_open_counting(Trial *t, const Pmu *pmu, Shape shape, unsigned cpu) {
        return trial_open(t, pmu, shape, cpu, true, 0);
}

int trial_open_ready(Trial *t, const Pmu *pmu, Shape shape, unsigned cpu) {
        return trial_open(t, pmu, shape, cpu, false, 1);
}

int trial_open_last(Trial *t, const Pmu *pmu, Shape shape, unsigned cpu) {
        struct perf_event_attr attrs[TRIAL_MAX];
        unsigned n;

        if (!shape_attrs(pmu, shape, attrs, &n) || n != t->n + 1)
                return -E2BIG;
        if (t->n > 0)
                kernel_enable(t->fds[0]);
        return trial_open_one(t, attrs[t->n], cpu, -1);
}

void trial_stop(Trial *t) {
        if (t->n > 1)
                kernel_disable(t->fds[0]);
        if (t->n > 0)
                kernel_disable(t->fds[t->n - 1]);
}

void trial_close(Trial *t) {
        while (t->n > 0)
                kernel_close(t->fds[--t->n]);
}

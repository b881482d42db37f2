/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trial.h"

#include "perf/pmu/kernel.h"

#define NO_TASK (-1)

struct perf_event_attr trial_attr(const PmuEvent *e) {
        return (struct perf_event_attr){
                .size = sizeof(struct perf_event_attr),
                .type = e->type,
                .config = e->config,
        };
}

bool trial_is_our_fault(int error) {
        return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

/* Kernels before 6.6 know no extended type on arm64; there a plain event, on a CPU, is that CPU's.
 */
static int trial_open_fd(struct perf_event_attr *attr, unsigned cpu, int leader) {
        int fd = kernel_open(attr, NO_TASK, (int) cpu, leader);

        if (fd != -ENOENT || attr->type != PERF_TYPE_HARDWARE || attr->config <= UINT32_MAX)
                return fd;
        attr->config &= UINT32_MAX;
        return kernel_open(attr, NO_TASK, (int) cpu, leader);
}

/* Who is disabled is not counted when the kernel looks whether a group fits: on x86 a member, on
 * arm64 (validate_event() of drivers/perf/arm_pmu.c) the leader too, unless an exec is to enable
 * it; nothing execs here. */
int trial_add(Trial *t, const struct perf_event_attr *event, unsigned cpu) {
        struct perf_event_attr attr = *event;
        bool leads = t->n == 0;
        int fd;

        if (t->n == TRIAL_MAX)
                return -E2BIG;
        attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        attr.disabled = leads;
        attr.enable_on_exec = leads;
        fd = trial_open_fd(&attr, cpu, leads ? -1 : t->fds[0]);
        if (fd < 0)
                return fd;
        t->fds[t->n++] = fd;
        return 0;
}

int trial_add_event(Trial *t, const PmuEvent *e, unsigned cpu) {
        const struct perf_event_attr attr = trial_attr(e);

        return trial_add(t, &attr, cpu);
}

int trial_open(Trial *t, const Pmu *pmu, Shape shape, unsigned cpu) {
        int r = 0;

        t->n = 0;
        for (unsigned i = 0; r == 0 && i < shape.general; i++)
                r = trial_add_event(t, &pmu->general, cpu);
        for (unsigned i = 0; r == 0 && i < pmu->n_fixed; i++)
                if (shape.fixed & (UINT32_C(1) << i))
                        r = trial_add_event(t, &pmu->fixed[i], cpu);
        if (r < 0)
                trial_close(t);
        return r;
}

void trial_close(Trial *t) {
        while (t->n > 0)
                kernel_close(t->fds[--t->n]);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probe.h"

#include <linux/hw_breakpoint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* Watched only while a probe has its slot open, and never enabled. */
static volatile uint64_t probe_word;

static int probe_open(const struct perf_event_attr *attr, unsigned cpu, int leader) {
        int fd = (int) syscall(SYS_perf_event_open, attr, -1, cpu, leader, PERF_FLAG_FD_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

/* The event that a PMU is probed with: one that every counter of it takes. False: none is known. */
static bool probe_event(const Pmu *pmu, struct perf_event_attr *ret, const char **ret_name) {
        *ret = (struct perf_event_attr){
                .size = sizeof(*ret),
                .type = pmu->type,
                .disabled = 1,
                .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        };
        switch (pmu->kind) {
        case PMU_CORE:
                ret->type = PERF_TYPE_HARDWARE;
                ret->config = PERF_COUNT_HW_CPU_CYCLES;
                /* the extended type in the upper half chooses the PMU on hybrid CPUs */
                if (pmu->type != PERF_TYPE_RAW)
                        ret->config |= (uint64_t) pmu->type << PERF_PMU_TYPE_SHIFT;
                *ret_name = "cycles";
                return true;
        case PMU_BREAKPOINT:
                ret->bp_type = HW_BREAKPOINT_W;
                ret->bp_addr = (uint64_t) (uintptr_t) &probe_word;
                ret->bp_len = HW_BREAKPOINT_LEN_8;
                ret->exclude_kernel = 1;
                *ret_name = "mem:w";
                return true;
        default:
                return false;
        }
}

bool probe_can(const Pmu *pmu) {
        return pmu->kind == PMU_CORE || pmu->kind == PMU_BREAKPOINT;
}

static void fds_close(int *fds, unsigned n) {
        while (n > 0)
                close_fd(fds[--n]);
}

/* Says nothing about the PMU: it is we who have nothing left. */
static bool is_our_fault(int r) {
        return r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

/* Opens up to max events on the CPU, as one group or each for itself. Returns how many, or -errno when
 * not even the first is possible for another reason than a full PMU. */
static int probe_fill(const struct perf_event_attr *event, bool group, unsigned cpu, int *fds,
                      unsigned max) {
        for (unsigned n = 0; n < max; n++) {
                struct perf_event_attr attr = *event;

                attr.disabled = !group || n == 0;
                fds[n] = probe_open(&attr, cpu, group && n > 0 ? fds[0] : -1);
                if (is_our_fault(fds[n])) {
                        int r = fds[n];

                        fds_close(fds, n);
                        return r;
                }
                if (fds[n] < 0)
                        return n == 0 && fds[n] != -ENOSPC ? fds[n] : (int) n;
        }
        return (int) max;
}

static int capacity_set(Pmu *pmu, unsigned counters, const char *probed) {
        char *name = strdup(probed);

        if (!name)
                return -ENOMEM;
        free(pmu->probed);
        pmu->probed = name;
        pmu->counters = counters;
        pmu->measured = true;
        return 0;
}

int probe_capacity(Pmu *pmu, const CpuSet *online) {
        struct perf_event_attr event;
        const char *name;
        unsigned best = 0;
        bool opened = false;

        if (pmu->kind == PMU_SOFTWARE || pmu->kind == PMU_TRACEPOINT)
                return capacity_set(pmu, 0, "");
        if (!probe_event(pmu, &event, &name))
                return 0;

        CPU_FOREACH(cpu, &pmu->cpus) {
                int fds[PROBE_GROUP_MAX], n;

                if (!cpuset_has(online, (unsigned) cpu))
                        continue;
                n = probe_fill(&event, pmu->kind == PMU_CORE, (unsigned) cpu, fds, PROBE_GROUP_MAX);
                if (n < 0)
                        continue;
                fds_close(fds, (unsigned) n);
                opened = true;
                best = MAX(best, (unsigned) n);
                /* A group is validated against an empty PMU: one CPU tells for all of the PMU.
                 * Breakpoint slots can be taken by others on some CPUs, so the best one counts. */
                if (pmu->kind == PMU_CORE)
                        break;
        }
        if (!opened)
                return 0;
        /* Others may have had slots while we looked: never less than was seen before. */
        if (pmu->kind == PMU_BREAKPOINT)
                best = MAX(best, pmu->counters);
        return capacity_set(pmu, best < PROBE_GROUP_MAX ? best : 0, name);
}

static void probe_cpu_close(const Probe *p, ProbeCpu *c) {
        if (c->fds)
                fds_close(c->fds, p->wanted);
        free(c->fds);
        c->fds = NULL;
}

/* A group of n is on the PMU at the first look. */
static bool group_is_on(const struct perf_event_attr *event, unsigned cpu, unsigned n) {
        uint64_t data[3] = {};
        int fds[PROBE_GROUP_MAX], opened;
        bool on;

        opened = probe_fill(event, true, cpu, fds, n);
        on = opened == (int) n && ioctl(fds[0], PERF_EVENT_IOC_ENABLE, 0) == 0 &&
             read(fds[0], data, sizeof(data)) == sizeof(data) && data[1] > 0 && data[2] == data[1];
        fds_close(fds, (unsigned) MAX(opened, 0));
        return on;
}

int probe_free_now(const Pmu *pmu, unsigned cpu, unsigned max) {
        struct perf_event_attr event;
        const char *name;
        int fds[PROBE_GROUP_MAX], n;

        max = MIN(max, PROBE_GROUP_MAX);
        if (!probe_event(pmu, &event, &name))
                return -EOPNOTSUPP;
        if (pmu->kind == PMU_BREAKPOINT) {
                n = probe_fill(&event, false, cpu, fds, max);
                fds_close(fds, (unsigned) MAX(n, 0));
                return n;
        }
        for (n = (int) max; n > 0; n--)
                if (group_is_on(&event, cpu, (unsigned) n))
                        break;
        return n;
}

static void probe_cpu_settle(const Probe *p, ProbeCpu *c, unsigned n_free) {
        c->free = n_free;
        c->settled = true;
        probe_cpu_close(p, c);
}

/* Not all are free: how many then. */
static unsigned probe_free_below(const Probe *p, unsigned cpu) {
        return (unsigned) MAX(probe_free_now(p->pmu, cpu, p->wanted - 1), 0);
}

/* Looks at the group of one CPU. */
static void probe_cpu_look(const Probe *p, ProbeCpu *c, bool first, uint64_t now) {
        struct {
                uint64_t value, enabled, running;
        } data;
        uint64_t enabled, running;

        if (read(c->fds[0], &data, sizeof(data)) != sizeof(data)) {
                probe_cpu_settle(p, c, 0); /* the CPU has gone offline */
                return;
        }
        enabled = data.enabled - c->enabled;
        running = data.running - c->running;
        c->enabled = data.enabled;
        c->running = data.running;

        if (enabled == 0 || running < enabled)
                c->quiet_since = 0;
        else if (first)
                probe_cpu_settle(p, c, p->wanted);
        else if (c->quiet_since == 0)
                c->quiet_since = now;
        else if (now - c->quiet_since >= PROBE_QUIET_USEC)
                probe_cpu_settle(p, c, p->wanted);

        if (!c->settled && now - p->begun_usec >= PROBE_WATCH_USEC) {
                probe_cpu_close(p, c);
                probe_cpu_settle(p, c, probe_free_below(p, c->cpu));
        }
}

static int probe_cpu_begin(const Probe *p, ProbeCpu *c, const struct perf_event_attr *event) {
        int n;

        c->fds = calloc(p->wanted, sizeof(int));
        if (!c->fds)
                return -ENOMEM;
        n = probe_fill(event, p->pmu->kind == PMU_CORE, c->cpu, c->fds, p->wanted);
        if (is_our_fault(n)) {
                free(c->fds);
                c->fds = NULL;
                return n;
        }
        for (unsigned i = (unsigned) MAX(n, 0); i < p->wanted; i++)
                c->fds[i] = -1;
        if (p->pmu->kind == PMU_BREAKPOINT || n < (int) p->wanted)
                probe_cpu_settle(p, c, p->pmu->kind == PMU_BREAKPOINT ? (unsigned) MAX(n, 0) : 0);
        else if (ioctl(c->fds[0], PERF_EVENT_IOC_ENABLE, 0) < 0)
                probe_cpu_settle(p, c, 0);
        return 0;
}

int probe_begin(const Pmu *pmu, const CpuSet *cpus, unsigned wanted, uint64_t now_usec,
                Probe **ret) {
        _cleanup_(probe_freep) Probe *p = calloc(1, sizeof(Probe));
        struct perf_event_attr event;
        const char *name;

        if (!p)
                return -ENOMEM;
        if (!probe_event(pmu, &event, &name) || wanted == 0)
                return -EINVAL;
        p->pmu = pmu;
        p->wanted = wanted;
        p->begun_usec = p->next_usec = now_usec;
        p->cpus = calloc(MAX(cpuset_count(cpus), 1u), sizeof(ProbeCpu));
        if (!p->cpus)
                return -ENOMEM;
        CPU_FOREACH(cpu, cpus) {
                ProbeCpu *c = &p->cpus[p->n_cpus++];
                int r;

                *c = (ProbeCpu){ .cpu = (unsigned) cpu };
                r = probe_cpu_begin(p, c, &event);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(p);
        return 0;
}

int probe_look(Probe *p, uint64_t now_usec) {
        bool first = p->next_usec == p->begun_usec;
        bool again = false;

        for (size_t i = 0; i < p->n_cpus; i++) {
                ProbeCpu *c = &p->cpus[i];

                if (!c->settled)
                        probe_cpu_look(p, c, first, now_usec);
                again |= !c->settled;
        }
        p->next_usec = now_usec + PROBE_STEP_USEC;
        return again ? PROBE_AGAIN : PROBE_DONE;
}

Probe *probe_free(Probe *p) {
        if (!p)
                return NULL;
        for (size_t i = 0; i < p->n_cpus; i++)
                probe_cpu_close(p, &p->cpus[i]);
        free(p->cpus);
        free(p);
        return NULL;
}

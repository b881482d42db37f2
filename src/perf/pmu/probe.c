/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probe.h"

#include <linux/hw_breakpoint.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "perf/pmu/perf-open.h"

/* Watched only while a probe has its slot open, and never enabled. */
static volatile uint64_t probe_word;

/* Debug registers that there are by architecture (Intel SDM and AMD APM: DR0 to DR3). Elsewhere
 * their number differs, and is what can be had at once. */
#if defined(__x86_64__) || defined(__i386__)
#define BREAKPOINTS_MIN 4u
#else
#define BREAKPOINTS_MIN 0u
#endif

#define NO_TASK (-1)
#define MYSELF  0

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
                /* On arm64 a group's leader that is disabled is not counted when the kernel looks
                 * whether the group fits (validate_event() of drivers/perf/arm_pmu.c), unless an
                 * exec is to enable it; nothing execs here. */
                ret->enable_on_exec = 1;
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

static void probe_describe(PerfOpen *ret, const struct perf_event_attr *event, pid_t pid,
                           unsigned cpu, bool leads, bool alone) {
        perf_open_init(ret, event);
        ret->attr.known.disabled = leads || alone;
        ret->pid = pid;
        ret->cpu = (int) cpu;
        ret->leader = leads || alone ? PERF_OPEN_NO_LEADER : 0;
}

/* Returns how many there are now, what the next one's error was, and from which CPU they were
 * opened. */
static unsigned probe_open(const struct perf_event_attr *event, pid_t pid, bool group, unsigned cpu,
                           int *fds, unsigned max, int *ret_error, unsigned *ret_from) {
        PerfOpen opens[PROBE_GROUP_MAX];
        unsigned n = 0;

        for (unsigned i = 0; i < max; i++)
                probe_describe(&opens[i], event, pid, cpu, i == 0, !group);
        perf_open_all(opens, max);
        for (; n < max && opens[n].fd >= 0; n++)
                fds[n] = opens[n].fd;
        *ret_error = n < max ? opens[n].fd : 0;
        *ret_from = max > 0 ? opens[0].from : cpu;
        return n;
}

/* Opens up to max events on the CPU, as one group or each for itself. Returns how many, or -errno
 * when not even the first is possible for another reason than a full PMU. */
static int probe_fill(const struct perf_event_attr *event, pid_t pid, bool group, unsigned cpu,
                      int *fds, unsigned max, unsigned *ret_from) {
        struct perf_event_attr attr = *event;
        int error;
        unsigned n = probe_open(&attr, pid, group, cpu, fds, max, &error, ret_from);

        /* Kernels before 6.6 know no extended type on arm64; there a plain one, on a CPU, is that
         * CPU's. */
        if (error == -ENOENT && n == 0 && attr.type == PERF_TYPE_HARDWARE &&
            attr.config > UINT32_MAX) {
                attr.config &= UINT32_MAX;
                n = probe_open(&attr, pid, group, cpu, fds, max, &error, ret_from);
        }
        if (is_our_fault(error)) {
                fds_close(fds, n);
                return error;
        }
        return n == 0 && error < 0 && error != -ENOSPC ? error : (int) n;
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

        CPU_FOREACH (cpu, &pmu->cpus) {
                int fds[PROBE_GROUP_MAX], n;
                unsigned from;

                if (!cpuset_has(online, (unsigned) cpu))
                        continue;
                n = probe_fill(&event, pmu->kind == PMU_CORE ? NO_TASK : MYSELF,
                               pmu->kind == PMU_CORE, (unsigned) cpu, fds, PROBE_GROUP_MAX, &from);
                if (n < 0)
                        continue;
                fds_close(fds, (unsigned) n);
                opened = true;
                best = MAX(best, (unsigned) n);
                /* A group is validated against an empty PMU: one CPU tells for all of the PMU.
                 * Breakpoints of a process are not in the way of those of another, but those of a
                 * CPU are, so the best one counts. */
                if (pmu->kind == PMU_CORE)
                        break;
        }
        if (!opened)
                return 0;
        /* Others may have had slots on every CPU while we looked. */
        if (pmu->kind == PMU_BREAKPOINT)
                best = MAX(best, BREAKPOINTS_MIN);
        return capacity_set(pmu, best < PROBE_GROUP_MAX ? best : 0, name);
}

static bool leader_was_on(int fd) {
        struct {
                uint64_t value, enabled, running;
        } data;

        return read(fd, &data, sizeof(data)) == sizeof(data) && data.enabled > 0 &&
               data.running == data.enabled;
}

/* Whether a new group of n, flexible and thus scheduled after everybody who is there already, is on
 * the PMU as soon as it is enabled. On the CPU that this process or the opening one runs on, nobody
 * else does, and whoever would run but for it has pinned events that are not to be seen: it rests
 * for a moment, and the group must stay on. Negative: it is we who have nothing left. */
static int group_is_on(const struct perf_event_attr *event, unsigned cpu, unsigned n, bool rest) {
        static const struct timespec moment = { .tv_nsec = PROBE_REST_USEC * 1000 };
        int fds[PROBE_GROUP_MAX], opened;
        unsigned from;
        bool on;

        if (n > PROBE_GROUP_MAX)
                return 0;
        opened = probe_fill(event, NO_TASK, true, cpu, fds, n, &from);
        if (is_our_fault(opened))
                return opened;
        on = opened == (int) n && ioctl(fds[0], PERF_EVENT_IOC_ENABLE, 0) == 0 &&
             leader_was_on(fds[0]);
        if (on && rest && (cpu == from || cpu == (unsigned) sched_getcpu())) {
                (void) nanosleep(&moment, NULL);
                on = leader_was_on(fds[0]);
        }
        fds_close(fds, (unsigned) MAX(opened, 0));
        return on;
}

static uint64_t monotonic_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / 1000;
}

/* Where flexible events take turns, the kernel moves the first of them behind the others every few
 * milliseconds: behind the new group too, if it happens while that is opened, which is then on
 * although somebody else is there. Of two groups that are on one after the other within one such
 * interval this can be true of one only. */
static int counters_are_free(const Pmu *pmu, const struct perf_event_attr *event, unsigned cpu,
                             unsigned n) {
        uint64_t begun = monotonic_usec();
        int on = group_is_on(event, cpu, n, false);

        if (on > 0)
                on = group_is_on(event, cpu, n, true);
        if (on > 0 && monotonic_usec() - begun >= pmu->turn_usec)
                on = 0;
        return on;
}

int probe_free_now(const Pmu *pmu, unsigned cpu, unsigned max) {
        struct perf_event_attr event;
        const char *name;
        int fds[PROBE_GROUP_MAX], n, on;
        unsigned from;

        max = MIN(max, PROBE_GROUP_MAX);
        if (!probe_event(pmu, &event, &name))
                return -EOPNOTSUPP;
        if (pmu->kind == PMU_BREAKPOINT) {
                n = probe_fill(&event, NO_TASK, false, cpu, fds, max, &from);
                fds_close(fds, (unsigned) MAX(n, 0));
                return n;
        }
        for (n = (int) max; n > 0; n--) {
                on = counters_are_free(pmu, &event, cpu, (unsigned) n);
                if (on != 0)
                        return on < 0 ? on : n;
        }
        return 0;
}

/* One look at one CPU; the last one counts what is there, if that is not all. */
static int probe_cpu_look(const Probe *p, ProbeCpu *c, bool last) {
        struct perf_event_attr event;
        const char *name;
        int n;

        if (p->pmu->kind == PMU_BREAKPOINT || last)
                n = probe_free_now(p->pmu, c->cpu, c->wanted);
        else {
                (void) probe_event(p->pmu, &event, &name);
                n = counters_are_free(p->pmu, &event, c->cpu, c->wanted);
                if (n == 0)
                        return 0;
                n = n < 0 ? n : (int) c->wanted;
        }
        if (is_our_fault(n))
                return n;
        c->free = (unsigned) MAX(n, 0); /* the CPU has gone offline: none */
        c->settled = true;
        return 0;
}

/* One look at all that are not settled; whether any is left. */
static int probe_look_all(Probe *p, bool last) {
        bool again = false;

        for (size_t i = 0; i < p->n_cpus; i++) {
                if (p->cpus[i].settled)
                        continue;
                int r = probe_cpu_look(p, &p->cpus[i], last);

                if (r < 0)
                        return r;
                again |= !p->cpus[i].settled;
        }
        return again;
}

int probe_begin_each(const Pmu *pmu, const CpuSet *cpus, ProbeWants wants, void *userdata,
                     uint64_t now_usec, Probe **ret) {
        _cleanup_(probe_freep) Probe *p = calloc(1, sizeof(Probe));
        int r;

        if (!p)
                return -ENOMEM;
        *p = (Probe){ .pmu = pmu,
                      .begun_usec = now_usec,
                      .next_usec = now_usec,
                      .step_usec = PROBE_STEP_USEC };
        p->cpus = calloc(MAX(cpuset_count(cpus), 1u), sizeof(ProbeCpu));
        if (!p->cpus)
                return -ENOMEM;
        CPU_FOREACH (cpu, cpus) {
                ProbeCpu *c = &p->cpus[p->n_cpus++];

                c->cpu = (unsigned) cpu;
                c->wanted = wants(userdata, pmu, c->cpu);
                c->settled = c->wanted == 0;
        }
        r = probe_look_all(p, false);
        if (r < 0)
                return r;
        p->again = r;
        *ret = TAKE_PTR(p);
        return 0;
}

static unsigned wants_everywhere(void *userdata, const Pmu *pmu, unsigned cpu) {
        return *(const unsigned *) userdata;
}

int probe_begin(const Pmu *pmu, const CpuSet *cpus, unsigned wanted, uint64_t now_usec,
                Probe **ret) {
        if (!probe_can(pmu) || wanted == 0)
                return -EINVAL;
        return probe_begin_each(pmu, cpus, wants_everywhere, &wanted, now_usec, ret);
}

int probe_look(Probe *p, uint64_t now_usec) {
        /* the first look was that of probe_begin() */
        if (p->again && p->next_usec > p->begun_usec) {
                bool last = now_usec >= p->begun_usec + PROBE_WATCH_USEC;
                int r = probe_look_all(p, last);

                if (r < 0 && !last)
                        r = 1; /* out of descriptors for a moment */
                p->again = r > 0;
        }
        p->next_usec = MIN(now_usec + p->step_usec, p->begun_usec + PROBE_WATCH_USEC);
        p->step_usec *= 2;
        return p->again ? PROBE_AGAIN : PROBE_DONE;
}

Probe *probe_free(Probe *p) {
        if (!p)
                return NULL;
        free(p->cpus);
        free(p);
        return NULL;
}

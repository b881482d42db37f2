/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "explain.h"

#include <stdio.h>
#include <string.h>

/* Reads a small number from /proc/sys; -100 when it cannot be had. */
static int sysctl_read(const char *path) {
        int value = -100;
        FILE *f = fopen(path, "re");

        if (!f)
                return -100;
        if (fscanf(f, "%d", &value) != 1)
                value = -100;
        (void) fclose(f);
        return value;
}

typedef struct Asked {
        const Event *event;
        const char *pmu;
        pid_t tid;
        int cpu;
        char where[64];
} Asked;

static void asked_init(Asked *a, const Event *event, pid_t tid, int cpu) {
        *a = (Asked){ .event = event, .pmu = event->pmu ? event->pmu->name : "none", .tid = tid,
                      .cpu = cpu };
        if (tid < 0)
                (void) snprintf(a->where, sizeof(a->where), "on CPU %d", cpu);
        else if (cpu < 0)
                (void) snprintf(a->where, sizeof(a->where), "for thread %d", (int) tid);
        else
                (void) snprintf(a->where, sizeof(a->where), "for thread %d on CPU %d", (int) tid,
                                cpu);
}

static int explain_no_counter_left(const Asked *a, Refusal *why) {
        return refuse(why, REFUSAL_NO_COUNTER_LEFT,
                      "'%s' %s: no counter of PMU %s is left; each open event keeps one, enabled or "
                      "not. Take a hold (perfalloc), or see who has them with 'perfallocctl users'",
                      a->event->name, a->where, a->pmu);
}

static int explain_privilege(const Asked *a, Refusal *why) {
        return refuse(why, REFUSAL_PRIVILEGE_NEEDED,
                      "'%s' %s: the kernel wants more privilege than the service has here "
                      "(kernel.perf_event_paranoid is %d); a kernel that refuses at 3 and above "
                      "needs CAP_SYS_ADMIN in perfallocd.service, or a lower setting",
                      a->event->name, a->where, sysctl_read("/proc/sys/kernel/perf_event_paranoid"));
}

static int explain_not_permitted(const Asked *a, Refusal *why) {
        return refuse(why, REFUSAL_NOT_PERMITTED,
                      "'%s' %s: the kernel does not permit it; perf_event_open may be blocked for the "
                      "service by a seccomp filter, a security module or kernel lockdown",
                      a->event->name, a->where);
}

static int explain_no_such_process(const Asked *a, Refusal *why) {
        return refuse(why, REFUSAL_NO_SUCH_PROCESS, "'%s': thread %d does not exist (any more)",
                      a->event->name, (int) a->tid);
}

static int explain_not_on_this_cpu(const Asked *a, Refusal *why) {
        return refuse(why, REFUSAL_NOT_ON_THIS_CPU,
                      "'%s' %s: PMU %s does not count there, or the CPU is offline; see 'perfallocctl "
                      "pmus' for the CPUs of each PMU",
                      a->event->name, a->where, a->pmu);
}

static int explain_no_such_event(const Asked *a, Refusal *why) {
        return refuse(why, REFUSAL_NO_SUCH_EVENT,
                      "'%s' %s: this machine's PMU %s has no such event; see 'perfallocctl events'",
                      a->event->name, a->where, a->pmu);
}

static int explain_invalid_event(const Asked *a, Refusal *why) {
        return refuse(why, REFUSAL_INVALID_EVENT,
                      "'%s' %s: PMU %s takes no such combination; a group must fit the PMU as a "
                      "whole, and a breakpoint's address must be aligned to its length",
                      a->event->name, a->where, a->pmu);
}

static int explain_descriptors(const Asked *a, Refusal *why) {
        return refuse(why, REFUSAL_TOO_MANY_DESCRIPTORS,
                      "'%s' %s: the service has no descriptor left; close counters, count fewer CPUs, "
                      "or raise LimitNOFILE= in perfallocd.service",
                      a->event->name, a->where);
}

static int explain_busy(const Asked *a, Refusal *why) {
        return refuse(why, REFUSAL_BUSY,
                      "'%s' %s: another event has PMU %s for itself; see who with 'perfallocctl "
                      "users'",
                      a->event->name, a->where, a->pmu);
}

static const struct {
        int error;
        int (*explain)(const Asked *a, Refusal *why);
} explanations[] = {
        { ENOSPC, explain_no_counter_left },   { EACCES, explain_privilege },
        { EPERM, explain_not_permitted },      { ESRCH, explain_no_such_process },
        { ENODEV, explain_not_on_this_cpu },   { ENOENT, explain_no_such_event },
        { EINVAL, explain_invalid_event },     { EMFILE, explain_descriptors },
        { ENFILE, explain_descriptors },       { EBUSY, explain_busy },
};

int explain_open(int error, const Event *event, pid_t tid, int cpu, Refusal *why) {
        Asked asked;
        int code;

        if (error == ENOMEM)
                return -ENOMEM;
        asked_init(&asked, event, tid, cpu);
        for (size_t i = 0; i < ELEMENTSOF(explanations); i++)
                if (explanations[i].error == error)
                        return explanations[i].explain(&asked, why);

        code = refusal_from_errno(error);
        return refuse(why, code ?: REFUSAL_INVALID_EVENT, "'%s' %s on PMU %s: %s", event->name,
                      asked.where, asked.pmu, strerror(error));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "explain.h"

#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <string.h>

#include "perf/event/attr.h"

#define SYSCTL "/proc/sys/kernel/"

typedef struct Asked {
        const Event *event;
        const char *pmu; /* its name, or "(none)" */
        pid_t tid;
        int cpu;
        char where[64];
} Asked;

/* The value of a sysctl; -100: it cannot be read. */
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

static void asked_init(Asked *a, const Event *event, pid_t tid, int cpu) {
        *a = (Asked){ .event = event,
                      .pmu = event->pmu ? event->pmu->name : "(none)",
                      .tid = tid,
                      .cpu = cpu };
        if (tid < 0)
                (void) snprintf(a->where, sizeof(a->where), "on CPU %d", cpu);
        else if (cpu < 0)
                (void) snprintf(a->where, sizeof(a->where), "for thread %d", (int) tid);
        else
                (void) snprintf(a->where, sizeof(a->where), "for thread %d on CPU %d", (int) tid,
                                cpu);
}

static int explain_attr_size(const Asked *a, Refusal *why) {
        return refuse(
                why, REFUSAL_ATTR_SIZE,
                "'%s' %s: it is written for a newer kernel: fields are set that this one does not "
                "know, whose perf_event_attr has %u bytes (property AttrSize); clear them, or use "
                "the event's older form",
                a->event->name, a->where, attr_kernel_size());
}

static int explain_privilege(const Asked *a, Refusal *why) {
        return refuse(why, REFUSAL_PRIVILEGE_NEEDED,
                      "'%s' %s: the kernel requires a privilege that the service does not have "
                      "(kernel.perf_event_paranoid is %d); a kernel that refuses at 3 and above "
                      "needs CAP_SYS_ADMIN in perfallocd.service, or a lower setting",
                      a->event->name, a->where, sysctl_read(SYSCTL "perf_event_paranoid"));
}

#define INVALID_GROUP                                                                              \
        "a group must fit on the PMU and have one target, and events join it at its leader"

/* What is found wrong in the attr, else what may be wrong. */
static const char *find_invalid(const Asked *a) {
        const struct perf_event_attr *attr = &a->event->attr;

        if (attr->enable_on_exec && attr->remove_on_exec)
                return "enable_on_exec and remove_on_exec contradict each other";
        if (attr->inherit_thread && !attr->inherit)
                return "inherit_thread needs inherit";
        if (attr->type == PERF_TYPE_BREAKPOINT && attr->bp_type == HW_BREAKPOINT_R)
                return "some CPUs, x86 among them, have no breakpoints for reads alone: use rw";
        if (attr->type == PERF_TYPE_BREAKPOINT)
                return "a breakpoint is 1, 2, 4 or 8 bytes long and its address a multiple of "
                       "that, and on the kernel's addresses it must not exclude the kernel";
        if (a->event->pmu && a->event->pmu->kind == PMU_UNCORE && a->tid >= 0)
                return "it is shared by several CPUs and cannot count a process: use a CPU";
        if (attr->exclude_kernel || attr->exclude_user || attr->exclude_hv)
                return INVALID_GROUP "; and not every PMU can leave out user space or kernel: try "
                                     "it without :u and :k";
        return INVALID_GROUP;
}

static int explain_invalid_event(const Asked *a, Refusal *why) {
        const struct perf_event_attr *attr = &a->event->attr;
        int rate = sysctl_read(SYSCTL "perf_event_max_sample_rate");

        if (attr->freq && rate >= 0 && attr->sample_freq > (uint64_t) rate)
                return refuse(why, REFUSAL_INVALID_EVENT,
                              "'%s' %s: PMU %s refuses this combination: the frequency of %" PRIu64
                              " is above kernel.perf_event_max_sample_rate (%d)",
                              a->event->name, a->where, a->pmu, (uint64_t) attr->sample_freq, rate);
        return refuse(why, REFUSAL_INVALID_EVENT, "'%s' %s: PMU %s refuses this combination: %s",
                      a->event->name, a->where, a->pmu, find_invalid(a));
}

static int explain_no_such_event(const Asked *a, Refusal *why) {
        uint32_t type = a->event->attr.type;

        if (a->event->pmu)
                return refuse(why, REFUSAL_NO_SUCH_EVENT,
                              "'%s' %s: this machine's PMU %s has no such event; see 'perfallocctl "
                              "events'",
                              a->event->name, a->where, a->pmu);
        if (type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE || type == PERF_TYPE_RAW)
                return refuse(
                        why, REFUSAL_NO_SUCH_EVENT,
                        "'%s' %s: this machine has no core PMU that it could be counted with, as "
                        "many "
                        "virtual machines have none; see 'perfallocctl pmus', and count software "
                        "events",
                        a->event->name, a->where);
        return refuse(
                why, REFUSAL_NO_SUCH_EVENT,
                "'%s' %s: this machine has no PMU of type %u; types above 5 differ from machine to "
                "machine, see 'perfallocctl pmus' or /sys/bus/event_source/devices/*/type",
                a->event->name, a->where, type);
}

static int explain_not_supported(const Asked *a, Refusal *why) {
        const struct perf_event_attr *attr = &a->event->attr;
        const char *what = attr->sample_type & PERF_SAMPLE_BRANCH_STACK ? "branch records"
                           : attr->precise_ip                           ? "precise samples"
                           : attr->aux_output                           ? "AUX output"
                           : attr->sample_period > 0                    ? "sampling"
                                                                        : "what the event asks for";

        return refuse(
                why, REFUSAL_NOT_SUPPORTED,
                "'%s' %s: PMU %s does not support %s; ask for less, or for an event of another PMU",
                a->event->name, a->where, a->pmu, what);
}

static int explain_stack_too_deep(const Asked *a, Refusal *why) {
        return refuse(
                why, REFUSAL_STACK_TOO_DEEP,
                "'%s' %s: call chains of %u frames are asked for, and kernel.perf_event_max_stack "
                "is %d; ask for fewer (sample_max_stack), or raise it while no event with call "
                "chains "
                "is open",
                a->event->name, a->where, a->event->attr.sample_max_stack,
                sysctl_read(SYSCTL "perf_event_max_stack"));
}

static int explain_no_such_process(const Asked *a, Refusal *why) {
        if (a->tid < 0)
                return refuse(why, REFUSAL_NO_SUCH_PROCESS, "'%s' %s: there is no such process",
                              a->event->name, a->where);
        return refuse(why, REFUSAL_NO_SUCH_PROCESS,
                      "'%s': thread %d has ended or does not exist (a zombie counts nothing)",
                      a->event->name, (int) a->tid);
}

#define NO_DESCRIPTOR                                                                              \
        "the service has run out of descriptors; close counters, count fewer CPUs, or raise "      \
        "LimitNOFILE= in perfallocd.service"

/* perf_event_open(2), ERRORS, in its order. The text is the event, its place and words; with
 * after_pmu also the PMU's name and that. */
static const struct {
        int error;
        int refusal;
        const char *words, *after_pmu;
        int (*explain)(const Asked *a, Refusal *why); /* replaces these */
} explanations[] = {
        { E2BIG, .explain = explain_attr_size },
        { EACCES, .explain = explain_privilege },
        { EBADF, REFUSAL_BAD_DESCRIPTOR,
          "the kernel does not accept the descriptor of the group leader or cgroup: a leader must "
          "be "
          "an open perf event, a cgroup a directory of the cgroup hierarchy that has perf_event" },
        { EBUSY, REFUSAL_BUSY, "another event has PMU ",
          " for itself; see who with 'perfallocctl users'" },
        { EFAULT, REFUSAL_BAD_ADDRESS,
          "an address in it is not valid; use a mapped one: user space has the lower half of the "
          "address space, and the kernel the upper half" },
        { EINTR, REFUSAL_MIXED_TRACING,
          "this uprobe is being traced through tracefs, and the kernel lets it be traced in one "
          "way at a time; switch it off in tracefs (events/uprobes/*/enable), or make another "
          "probe at the same place" },
        { EINVAL, .explain = explain_invalid_event },
        { EMFILE, REFUSAL_TOO_MANY_DESCRIPTORS, NO_DESCRIPTOR },
        { ENFILE, REFUSAL_TOO_MANY_DESCRIPTORS, NO_DESCRIPTOR },
        { ENODEV, REFUSAL_NOT_ON_THIS_CPU, "PMU ",
          " does not count there, or the CPU is offline; see 'perfallocctl pmus' for the CPUs of "
          "each PMU" },
        { ENOENT, .explain = explain_no_such_event },
        { ENOSPC, REFUSAL_NO_COUNTER_LEFT, "no counter of PMU ",
          " is left; each open event keeps one, enabled or not. Take a hold (perfalloc), or see "
          "who has them with 'perfallocctl users'" },
        { ENOSYS, REFUSAL_NOT_IMPLEMENTED,
          "this kernel cannot do it: it was built without perf events or without what the event "
          "asks for (PERF_SAMPLE_STACK_USER), or a seccomp filter hides perf_event_open from the "
          "service; leave that out, or change the container's filter" },
        { EOPNOTSUPP, .explain = explain_not_supported },
        { EOVERFLOW, .explain = explain_stack_too_deep },
        { EPERM, REFUSAL_NOT_PERMITTED,
          "the kernel does not permit it; perf_event_open may be blocked for the service by a "
          "seccomp filter, a security module or kernel lockdown, and a breakpoint on a kernel "
          "address takes CAP_SYS_ADMIN" },
        { ESRCH, .explain = explain_no_such_process },
};

int explain_open(int error, const Event *event, pid_t tid, int cpu, Refusal *why) {
        Asked asked;

        if (error == ENOMEM)
                return -ENOMEM;
        asked_init(&asked, event, tid, cpu);
        for (size_t i = 0; i < ELEMENTSOF(explanations); i++) {
                const char *after = explanations[i].after_pmu;

                if (explanations[i].error != error)
                        continue;
                if (explanations[i].explain)
                        return explanations[i].explain(&asked, why);
                return refuse(why, explanations[i].refusal, "'%s' %s: %s%s%s", event->name,
                              asked.where, explanations[i].words, after ? asked.pmu : "",
                              after ?: "");
        }
        return refuse(why, REFUSAL_INVALID_EVENT, "'%s' %s on PMU %s: %s", event->name, asked.where,
                      asked.pmu, strerror(error));
}

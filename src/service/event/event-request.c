/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-request.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "perf/event/attr.h"
#include "perf/event/explain.h"
#include "perf/group/cgroup.h"
#include "service/auth/action.h"
#include "service/util/options.h"

typedef struct EventOptions {
        int procfd, pidfd, group, cgroup;
} EventOptions;

static const OptionSpec option_specs[] = {
        { "procfd", "h", offsetof(EventOptions, procfd) },
        { "pidfd", "h", offsetof(EventOptions, pidfd) },
        { "group", "h", offsetof(EventOptions, group) },
        { "cgroup", "h", offsetof(EventOptions, cgroup) },
};

int event_request_take_attr(const PmuTable *pmus, const void *bytes, size_t n, EventRequest *q,
                            Refusal *why) {
        uint64_t type, config, flags;
        Pmu *pmu;
        int r;

        r = attr_read(bytes, n, attr_kernel_size(), &q->attr, why);
        if (r != 0)
                return r;
        type = attr_number(&q->attr, ATTR_TYPE);
        config = attr_number(&q->attr, ATTR_CONFIG);
        flags = attr_number(&q->attr, ATTR_FLAGS);
        pmu = pmu_table_find_event(pmus, (uint32_t) type, config);
        (void) snprintf(q->name, sizeof(q->name),
                        "event 0x%" PRIx64 " of type %" PRIu64 "%s%.48s%s", config, type,
                        pmu ? " (" : "", pmu ? pmu->name : "", pmu ? ")" : "");
        q->event = (Event){ .name = q->name, .pmu = pmu };
        memcpy(&q->event.attr, &q->attr, MIN(sizeof(q->event.attr), sizeof(q->attr)));
        if (!pmu)
                return explain_open(ENOENT, &q->event, q->pid, q->cpu, why);
        q->start = !(flags & attr_flag(0));
        attr_set_number(&q->attr, ATTR_FLAGS, flags | attr_flag(0));
        return attr_rules_check(&q->attr, attr_pmu(pmu), &q->needs, why);
}

static int flags_take(uint64_t flags, EventRequest *q, Refusal *why) {
        const uint64_t known = PERF_FLAG_FD_CLOEXEC | PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT;

        if (q->cgroup < 0 && flags & PERF_FLAG_PID_CGROUP)
                return refuse(
                        why, REFUSAL_INVALID_ARGS,
                        "flags: PERF_FLAG_PID_CGROUP needs option 'cgroup', a descriptor of its "
                        "directory");
        if (flags & ~(known | PERF_FLAG_PID_CGROUP))
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "flags: invalid value 0x%" PRIx64 " (PERF_FLAG_FD_CLOEXEC, "
                              "PERF_FLAG_FD_NO_GROUP, PERF_FLAG_FD_OUTPUT, PERF_FLAG_PID_CGROUP)",
                              flags & ~(known | PERF_FLAG_PID_CGROUP));
        q->flags = (unsigned long) (flags & known);
        if (q->cgroup >= 0)
                q->flags |= PERF_FLAG_PID_CGROUP;
        return 0;
}

static int place_check(const PmuTable *pmus, const EventRequest *q, Refusal *why) {
        if (q->cpu < -1 || (q->cpu >= 0 && !cpuset_has(&pmus->present, (unsigned) q->cpu)))
                return refuse(why, REFUSAL_INVALID_ARGS, "cpu: this machine has no CPU %d", q->cpu);
        if (q->pid < -1)
                return refuse(why, REFUSAL_INVALID_PROCESS, "pid: %d is not a process",
                              (int) q->pid);
        if (q->cgroup >= 0 && (q->pidfd >= 0 || q->procfd >= 0 || q->pid > 0))
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "option 'cgroup': %s names another target; leave it out (pid -1)",
                              q->pidfd >= 0    ? "option 'pidfd'"
                              : q->procfd >= 0 ? "option 'procfd'"
                                               : "pid");
        if (q->cpu < 0 && !event_request_has_target(q))
                return refuse(
                        why, REFUSAL_INVALID_ARGS,
                        "cpu: %s can be counted only on one CPU at a time; call once for each",
                        q->cgroup >= 0 ? "a cgroup" : "everybody (pid -1)");
        return q->cgroup >= 0 ? cgroup_check(q->cgroup, why) : 0;
}

int event_request_read(const PmuTable *pmus, sd_bus_message *m, EventRequest *ret, Refusal *why) {
        EventOptions o = { .procfd = -1, .pidfd = -1, .group = -1, .cgroup = -1 };
        const void *bytes;
        uint64_t seen, flags;
        int32_t pid, cpu;
        size_t n;
        int r;

        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = sd_bus_message_read_array(m, 'y', &bytes, &n);
        if (r >= 0)
                r = sd_bus_message_read(m, "iit", &pid, &cpu, &flags);
        if (r < 0)
                return r;
        r = options_read(m, option_specs, ELEMENTSOF(option_specs), &o, &seen, why);
        if (r != 0)
                return r;
        *ret = (EventRequest){ .pid = pid,
                               .cpu = cpu,
                               .procfd = o.procfd,
                               .pidfd = o.pidfd,
                               .group = o.group,
                               .cgroup = o.cgroup };
        r = flags_take(flags, ret, why);
        if (r == 0)
                r = place_check(pmus, ret, why);
        return r == 0 ? event_request_take_attr(pmus, bytes, n, ret, why) : r;
}

typedef struct TreeOptions {
        int procfd, pidfd, descendants;
        uint32_t cpu;
} TreeOptions;

enum { TREE_OPTION_CPU, _TREE_OPTION_MAX = 4 };

static const OptionSpec tree_option_specs[_TREE_OPTION_MAX] = {
        [TREE_OPTION_CPU] = { "cpu", "u", offsetof(TreeOptions, cpu) },
        { "procfd", "h", offsetof(TreeOptions, procfd) },
        { "pidfd", "h", offsetof(TreeOptions, pidfd) },
        { "descendants", "b", offsetof(TreeOptions, descendants) },
};

static int tree_check(uint64_t flags, Refusal *why) {
        if (flags & ~(uint64_t) PERF_FLAG_FD_CLOEXEC)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "flags: 0x%" PRIx64 " is not PERF_FLAG_FD_CLOEXEC, the only one that "
                              "goes with many events",
                              flags & ~(uint64_t) PERF_FLAG_FD_CLOEXEC);
        return 0;
}

int event_request_read_tree(const PmuTable *pmus, sd_bus_message *m, EventRequest *ret,
                            Refusal *why) {
        TreeOptions o = { .procfd = -1, .pidfd = -1 };
        uint64_t seen, flags;
        const void *bytes;
        size_t n;
        int r;

        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = sd_bus_message_read_array(m, 'y', &bytes, &n);
        if (r >= 0)
                r = sd_bus_message_read_basic(m, 't', &flags);
        if (r < 0)
                return r;
        r = options_read(m, tree_option_specs, ELEMENTSOF(tree_option_specs), &o, &seen, why);
        if (r == 0)
                r = tree_check(flags, why);
        if (r != 0)
                return r;
        *ret = EVENT_REQUEST_NULL;
        ret->procfd = o.procfd;
        ret->pidfd = o.pidfd;
        ret->descendants = o.descendants;
        ret->cpu = seen >> TREE_OPTION_CPU & 1 ? (int) MIN(o.cpu, (uint32_t) INT_MAX) : -1;
        r = place_check(pmus, ret, why);
        return r == 0 ? event_request_take_attr(pmus, bytes, n, ret, why) : r;
}

bool event_request_has_target(const EventRequest *q) {
        return q->cgroup < 0 && (q->pid >= 0 || q->pidfd >= 0 || q->procfd >= 0);
}

bool event_request_joins(const EventRequest *q) {
        return q->group >= 0 && !(q->flags & PERF_FLAG_FD_NO_GROUP);
}

bool event_request_redirects(const EventRequest *q) {
        return q->flags & PERF_FLAG_FD_OUTPUT && q->group >= 0;
}

pid_t event_request_pid(const EventRequest *q, const Thread *target) {
        return event_request_has_target(q) ? target->tid : -1;
}

static bool event_request_is_foreign(const EventRequest *q, bool untraceable) {
        return untraceable || !event_request_has_target(q);
}

unsigned event_request_actions(const EventRequest *q, bool untraceable) {
        unsigned actions = 0;

        if (!event_request_has_target(q) || q->needs.by[ATTR_NEED_SYSTEM])
                actions |= ACTION_COUNT_SYSTEM;
        if (event_request_has_target(q) && untraceable)
                actions |= ACTION_COUNT_OTHER;
        /* those who may count other processes or whole CPUs may count the kernel there */
        if (actions == 0)
                actions = q->needs.by[ATTR_NEED_KERNEL] ? ACTION_COUNT_KERNEL : ACTION_SAMPLE_OWN;
        if (q->needs.by[ATTR_NEED_RAW] ||
            (event_request_is_foreign(q, untraceable) && q->needs.by[ATTR_NEED_CONTENT]))
                actions |= ACTION_COUNT_RAW;
        return actions;
}

unsigned event_request_allowed(const EventRequest *q, bool untraceable) {
        const unsigned greater = ACTION_COUNT_KERNEL | ACTION_COUNT_OTHER | ACTION_COUNT_SYSTEM;
        unsigned actions = event_request_actions(q, untraceable), allowed = 0;

        if (actions & greater)
                allowed |= 1u << ATTR_NEED_KERNEL;
        if (actions & ACTION_COUNT_SYSTEM)
                allowed |= 1u << ATTR_NEED_SYSTEM;
        if (actions & ACTION_COUNT_RAW)
                allowed |= 1u << ATTR_NEED_RAW;
        if (actions & ACTION_COUNT_RAW || !event_request_is_foreign(q, untraceable))
                allowed |= 1u << ATTR_NEED_CONTENT;
        return allowed;
}

void event_request_ask(const EventRequest *q, uid_t target, Asked *ret) {
        char cpu[16];

        *ret = ASKED_NULL;
        asked_add_attr(ret, &q->attr, q->event.pmu);
        ret->mode = attr_number(&q->attr, ATTR_SAMPLE_PERIOD) != 0 ? "sampling" : "counting";
        ret->scope = q->cgroup >= 0 ? "cgroup" : event_request_has_target(q) ? "process" : "cpu";
        if (event_request_has_target(q))
                ret->target = target;
        if (q->cpu >= 0) {
                (void) snprintf(cpu, sizeof(cpu), "%d", q->cpu);
                asked_add(ret->cpus, cpu);
        }
}

void event_request_blame(const EventRequest *q, unsigned actions, Refusal *why) {
        static const unsigned blamed[_ATTR_NEED_MAX] = {
                [ATTR_NEED_KERNEL] = ACTION_COUNT_KERNEL,
                [ATTR_NEED_CONTENT] = ACTION_COUNT_RAW,
                [ATTR_NEED_RAW] = ACTION_COUNT_RAW,
                [ATTR_NEED_SYSTEM] = ACTION_COUNT_SYSTEM,
        };
        char fields[256] = "";
        Refusal inner = *why;

        for (int need = 0; need < _ATTR_NEED_MAX; need++) {
                const char *field = q->needs.by[need];

                if (!field || !(actions & blamed[need]) ||
                    strlen(fields) + strlen(field) + sizeof(", ") > sizeof(fields))
                        continue;
                (void) strcat(fields, *fields ? ", " : "");
                (void) strcat(fields, field);
        }
        if (*fields)
                (void) refuse(why, inner.code,
                              "attr: more permission is needed because of %s: %.700s", fields,
                              inner.text);
}

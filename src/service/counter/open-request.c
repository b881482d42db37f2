/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "open-request.h"

#include <string.h>

#include "core/event-list.h"
#include "perf/event/attr.h"
#include "perf/event/event-parse.h"
#include "perf/group/cgroup.h"
#include "service/auth/action.h"
#include "service/util/options.h"

#define NAME_MAX_BYTES 128u

typedef struct OpeningOptions {
        const char *scope, *cpus, *role, *yield, *name;
        uint32_t pid, priority;
        int procfd, pidfd, cgroup;
        int attach, descendants, group, pinned, start, persistent;
} OpeningOptions;

enum {
        OPTION_SCOPE,
        OPTION_PID,
        OPTION_PROCFD,
        OPTION_PIDFD,
        OPTION_ATTACH,
        OPTION_DESCENDANTS,
        OPTION_CPUS,
        OPTION_CGROUP,
        OPTION_GROUP,
        OPTION_PINNED,
        OPTION_ROLE,
        OPTION_PRIORITY,
        OPTION_YIELD,
        OPTION_NAME,
        OPTION_START,
        OPTION_PERSISTENT,
        _OPTION_MAX,
};

static const OptionSpec option_specs[_OPTION_MAX] = {
        [OPTION_SCOPE] = { "scope", "s", offsetof(OpeningOptions, scope) },
        [OPTION_PID] = { "pid", "u", offsetof(OpeningOptions, pid) },
        [OPTION_PROCFD] = { "procfd", "h", offsetof(OpeningOptions, procfd) },
        [OPTION_PIDFD] = { "pidfd", "h", offsetof(OpeningOptions, pidfd) },
        [OPTION_ATTACH] = { "attach", "b", offsetof(OpeningOptions, attach) },
        [OPTION_DESCENDANTS] = { "descendants", "b", offsetof(OpeningOptions, descendants) },
        [OPTION_CPUS] = { "cpus", "s", offsetof(OpeningOptions, cpus) },
        [OPTION_CGROUP] = { "cgroup", "h", offsetof(OpeningOptions, cgroup) },
        [OPTION_GROUP] = { "group", "b", offsetof(OpeningOptions, group) },
        [OPTION_PINNED] = { "pinned", "b", offsetof(OpeningOptions, pinned) },
        [OPTION_ROLE] = { "role", "s", offsetof(OpeningOptions, role) },
        [OPTION_PRIORITY] = { "priority", "u", offsetof(OpeningOptions, priority) },
        [OPTION_YIELD] = { "yield", "s", offsetof(OpeningOptions, yield) },
        [OPTION_NAME] = { "name", "s", offsetof(OpeningOptions, name) },
        [OPTION_START] = { "start", "b", offsetof(OpeningOptions, start) },
        [OPTION_PERSISTENT] = { "persistent", "b", offsetof(OpeningOptions, persistent) },
};

#define OPTIONS_TARGET (1u << OPTION_PID | 1u << OPTION_PIDFD | 1u << OPTION_PROCFD)

/* Which options go with which scope. */
static const struct {
        const char *name;
        uint64_t takes;
} scopes[_GROUP_SCOPE_MAX] = {
        [GROUP_PROCESS] = { "process",
                            OPTIONS_TARGET | 1u << OPTION_ATTACH | 1u << OPTION_DESCENDANTS },
        [GROUP_CPU] = { "cpu", 1u << OPTION_CPUS },
        [GROUP_CGROUP] = { "cgroup", 1u << OPTION_CPUS | 1u << OPTION_CGROUP },
};

/* The index of value in words, or REFUSAL_INVALID_ARGS. */
static int choice_read(const char *key, const char *value, const char *const words[], size_t n,
                       int *ret, Refusal *why) {
        char list[128] = "";

        for (size_t i = 0; i < n; i++) {
                if (strcmp(words[i], value) == 0) {
                        *ret = (int) i;
                        return 0;
                }
                (void) strncat(list, i > 0 ? ", " : "", sizeof(list) - strlen(list) - 1);
                (void) strncat(list, words[i], sizeof(list) - strlen(list) - 1);
        }
        return refuse(why, REFUSAL_INVALID_ARGS, "option '%s': invalid value '%.64s' (one of %s)",
                      key, value, list);
}

static int scope_read(const OpeningOptions *o, uint64_t seen, OpenRequest *q, Refusal *why) {
        uint64_t scoped = 0;
        int scope = GROUP_PROCESS;
        const char *names[_GROUP_SCOPE_MAX];
        int r;

        for (int i = 0; i < _GROUP_SCOPE_MAX; i++) {
                names[i] = scopes[i].name;
                scoped |= scopes[i].takes;
        }
        if (o->scope) {
                r = choice_read("scope", o->scope, names, _GROUP_SCOPE_MAX, &scope, why);
                if (r != 0)
                        return r;
        }
        for (int i = 0; i < _OPTION_MAX; i++)
                if (seen & scoped & ~scopes[scope].takes & UINT64_C(1) << i)
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "option '%s' cannot be used with scope %s",
                                      option_specs[i].key, scopes[scope].name);
        if (scope == GROUP_CGROUP && !(seen & 1u << OPTION_CGROUP))
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "scope cgroup needs option 'cgroup', a descriptor of its directory");
        if (seen & 1u << OPTION_PID && seen & 1u << OPTION_PIDFD)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "options 'pid' and 'pidfd' exclude each other");
        if (!o->attach && seen & OPTIONS_TARGET)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "option '%s': with 'attach' false there is no target yet",
                              seen & 1u << OPTION_PID     ? "pid"
                              : seen & 1u << OPTION_PIDFD ? "pidfd"
                                                          : "procfd");
        if (seen & 1u << OPTION_PID && (o->pid == 0 || o->pid > INT32_MAX))
                return refuse(why, REFUSAL_INVALID_PROCESS, "option 'pid': %u is not a process",
                              o->pid);
        if (scope == GROUP_CGROUP) {
                r = cgroup_check(o->cgroup, why);
                if (r != 0)
                        return r;
        }
        q->scope = (GroupScope) scope;
        q->pid = o->pid;
        q->pidfd = seen & 1u << OPTION_PIDFD ? o->pidfd : -1;
        q->procfd = seen & 1u << OPTION_PROCFD ? o->procfd : -1;
        q->cgroup = seen & 1u << OPTION_CGROUP ? o->cgroup : -1;
        q->attach = scope == GROUP_PROCESS && o->attach;
        q->descendants = o->descendants;
        return 0;
}

static int role_read(const OpeningOptions *o, uint64_t seen, const Peer *peer, OpenRequest *q,
                     Refusal *why) {
        static const char *const roles[] = { "foreground", "monitor" };
        static const char *const yields[] = {
                [PLAN_ALWAYS] = "always",
                [PLAN_EXCLUSIVE] = "exclusive",
                [PLAN_NEVER] = "never",
        };
        int role = 0, yields_to = PLAN_ALWAYS;
        int r;

        if (o->role) {
                r = choice_read("role", o->role, roles, ELEMENTSOF(roles), &role, why);
                if (r != 0)
                        return r;
        }
        q->monitor = role == 1;
        if (!q->monitor && seen & (1u << OPTION_PRIORITY | 1u << OPTION_YIELD))
                return refuse(why, REFUSAL_INVALID_ARGS, "option '%s' needs role monitor",
                              seen & 1u << OPTION_YIELD ? "yield" : "priority");
        if (o->yield) {
                r = choice_read("yield", o->yield, yields, ELEMENTSOF(yields), &yields_to, why);
                if (r != 0)
                        return r;
        }
        if (yields_to != PLAN_ALWAYS && !peer->root)
                return refuse(why, REFUSAL_ACCESS_DENIED,
                              "option 'yield': only root may have monitors that do not yield to "
                              "every hold ('%s')",
                              o->yield);
        q->yields_to = (PlanClass) yields_to;
        q->priority = o->priority;
        return 0;
}

static int cpus_read(Context *context, const OpeningOptions *o, OpenRequest *q, Refusal *why) {
        int r;

        if (q->scope == GROUP_PROCESS)
                return 0;
        if (!o->cpus)
                return cpuset_copy(&q->cpus, &context->pmus.present);
        r = cpuset_parse(&q->cpus, o->cpus, why);
        if (r != 0)
                return r > 0 ? refusal_prefix(why, "option 'cpus': ") : r;
        if (cpuset_is_empty(&q->cpus))
                return refuse(why, REFUSAL_INVALID_ARGS, "option 'cpus' is empty");
        CPU_FOREACH (cpu, &q->cpus)
                if (!cpuset_has(&context->pmus.present, (unsigned) cpu))
                        return refuse(why, REFUSAL_INVALID_ARGS,
                                      "option 'cpus': this machine has no CPU %d", cpu);
        q->has_cpus = true;
        return 0;
}

/* Events of PMUs that count on some CPUs only (uncore, hybrid) are opened on those, unless the
 * client names CPUs. The events of one call count on the same CPUs, so each event narrows them for
 * all. */
static int cpus_narrow(const Context *context, const Event *event, OpenRequest *q, Refusal *why) {
        _cleanup_(cpuset_done) CpuSet both = CPUSET_NULL, all = CPUSET_NULL;
        int r = event_units_cpus(event, &all);

        if (r >= 0)
                r = cpuset_intersect(&both, &context->pmus.present, &all);
        if (r < 0)
                return r;
        if (cpuset_is_empty(&both))
                return refuse(why, REFUSAL_NOT_ON_THIS_CPU,
                              "'%s': PMU %s counts on no CPU of this machine", event->name,
                              event->pmu->name);
        if (event != q->events && !cpuset_equal(&both, &q->cpus))
                return refuse(
                        why, REFUSAL_INVALID_EVENT,
                        "'%s' (PMU %s) and '%s' (PMU %s) count on different CPUs; open them in "
                        "calls of their own",
                        q->events[0].name, q->events[0].pmu->name, event->name, event->pmu->name);
        cpuset_done(&q->cpus);
        q->cpus = both;
        both = CPUSET_NULL;
        return 0;
}

static int cpus_fit(const Context *context, const Event *event, OpenRequest *q, Refusal *why) {
        _cleanup_(cpuset_done) CpuSet all = CPUSET_NULL;
        int r;

        if (q->scope == GROUP_PROCESS) {
                if (event->pmu->kind != PMU_UNCORE)
                        return 0;
                return refuse(why, REFUSAL_INVALID_EVENT,
                              "'%s': PMU %s is shared by several CPUs and cannot count a process; "
                              "count CPUs (scope cpu)",
                              event->name, event->pmu->name);
        }
        if (!q->has_cpus)
                return cpus_narrow(context, event, q, why);
        r = event_units_cpus(event, &all);
        if (r < 0)
                return r;
        if (cpuset_is_subset(&q->cpus, &all))
                return 0;
        return refuse(why, REFUSAL_NOT_ON_THIS_CPU,
                      "'%s': PMU %s does not count on all of the CPUs in option 'cpus'",
                      event->name, event->pmu->name);
}

static int event_check(const Context *context, const Event *event, OpenRequest *q, Refusal *why) {
        if (q->monitor && q->descendants && event->pmu->closes_to_yield)
                return refuse(
                        why, REFUSAL_INVALID_ARGS,
                        "option 'descendants': a monitor on PMU %s yields by closing its event; "
                        "descendants cannot be found again afterwards",
                        event->pmu->name);
        return cpus_fit(context, event, q, why);
}

static int refuse_many(Refusal *why) {
        return refuse(why, REFUSAL_LIMITS_EXCEEDED, "at most %u events per call", OPEN_EVENTS_MAX);
}

/* Calls often name the same event many times. */
static int event_read(Context *context, const char *string, OpenRequest *q, Refusal *why) {
        const Event *last = q->n_events > 0 ? &q->events[q->n_events - 1] : NULL;
        Event *e = &q->events[q->n_events];
        int r = last && strcmp(string, last->name) == 0
                        ? event_copy(e, last)
                        : event_parse(&context->pmus, string, e, why);

        if (r != 0)
                return r;
        q->n_events++;
        return event_check(context, e, q, why);
}

/* A string may be a list of several. */
static int events_read(Context *context, char **strings, OpenRequest *q, Refusal *why) {
        size_t n = 0;
        int r = 0;

        for (char **list = strings; *list; list++)
                n += event_list_count(*list);
        if (n == 0)
                return refuse(why, REFUSAL_INVALID_ARGS, "no event given");
        if (n > OPEN_EVENTS_MAX)
                return refuse_many(why);
        q->events = calloc(n, sizeof(Event));
        if (!q->events)
                return -ENOMEM;
        for (char **list = strings; *list && r == 0; list++) {
                char *rest = *list;

                for (char *event; r == 0 && (event = event_list_next(&rest));)
                        r = event_read(context, event, q, why);
        }
        return r;
}

int open_request_read(Context *context, sd_bus_message *m, const Peer *peer, OpenRequest *ret,
                      Refusal *why) {
        _cleanup_(open_request_done) OpenRequest q = OPEN_REQUEST_NULL;
        _cleanup_(strings_freep) char **strings = NULL;
        OpeningOptions o = {
                .procfd = -1, .pidfd = -1, .cgroup = -1, .attach = true, .start = true
        };
        uint64_t seen;
        int r;

        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = strings_read(m, OPEN_EVENTS_MAX, &strings);
        if (r == -E2BIG)
                return refuse_many(why);
        if (r < 0)
                return r;
        r = options_read(m, option_specs, _OPTION_MAX, &o, &seen, why);
        if (r != 0)
                return r;
        r = scope_read(&o, seen, &q, why);
        if (r == 0)
                r = role_read(&o, seen, peer, &q, why);
        if (r == 0)
                r = cpus_read(context, &o, &q, why);
        if (r == 0)
                r = o.name ? words_check("option 'name'", o.name, NAME_MAX_BYTES, why) : 0;
        if (r == 0)
                r = events_read(context, strings, &q, why);
        if (r != 0)
                return r;
        if (o.pinned && o.descendants)
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "options 'pinned' and 'descendants' exclude each other: the kernel "
                              "does not report when a descendant's pinned event is not counted");
        q.group = o.group;
        q.pinned = o.pinned;
        q.start = o.start;
        q.persistent = o.persistent;
        q.name = o.name;
        *ret = q;
        q = OPEN_REQUEST_NULL;
        return 0;
}

void open_request_done(OpenRequest *q) {
        for (size_t i = 0; q->events && i < q->n_events; i++)
                event_done(&q->events[i]);
        free(q->events);
        cpuset_done(&q->cpus);
        *q = OPEN_REQUEST_NULL;
}

/* 1 << AttrNeed, ... of all of them, on each PMU. The opener refuses what the rules never allow. */
static unsigned events_needs(const Event *events, size_t n_events) {
        unsigned needs = 0;

        for (size_t i = 0; i < n_events; i++)
                for (size_t unit = 0; unit < event_units(&events[i]); unit++) {
                        const Event *e = event_on(&events[i], unit);
                        AttrNeeds by = ATTR_NEEDS_NULL;

                        (void) attr_rules_check(&e->full, attr_pmu(e->pmu), &by, NULL);
                        for (int need = 0; need < _ATTR_NEED_MAX; need++)
                                needs |= by.by[need] ? 1u << need : 0;
                }
        return needs;
}

unsigned events_actions(const Event *events, size_t n_events, GroupScope scope, bool untraceable) {
        unsigned needs = events_needs(events, n_events), actions = 0;

        if (scope != GROUP_PROCESS || needs & 1u << ATTR_NEED_SYSTEM)
                actions |= ACTION_COUNT_SYSTEM;
        if (scope == GROUP_PROCESS && untraceable)
                actions |= ACTION_COUNT_OTHER;
        /* One prompt is enough: those who may count other processes, whole CPUs or the kernel may
         * count user space too. */
        if (actions == 0)
                actions = needs & 1u << ATTR_NEED_KERNEL ? ACTION_COUNT_KERNEL : ACTION_COUNT_OWN;
        if (needs & 1u << ATTR_NEED_RAW)
                actions |= ACTION_COUNT_RAW;
        return actions;
}

unsigned open_request_actions(const OpenRequest *q, bool untraceable) {
        return events_actions(q->events, q->n_events, q->scope, untraceable) |
               (q->monitor ? ACTION_MONITOR : 0) | (q->persistent ? ACTION_PERSIST : 0);
}

void open_request_ask(const OpenRequest *q, uid_t target, Asked *ret) {
        *ret = ASKED_NULL;
        asked_add_events(ret, q->events, q->n_events);
        ret->mode = "counting";
        ret->scope = group_scope_name(q->scope);
        if (q->attach)
                ret->target = target;
        if (q->scope != GROUP_PROCESS)
                asked_set_cpus(ret, &q->cpus);
}

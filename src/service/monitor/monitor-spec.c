/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor-spec.h"

#include <string.h>

#include "core/event-list.h"
#include "core/timespan.h"
#include "perf/event/event-parse.h"
#include "service/util/log.h"

void monitor_spec_done(MonitorSpec *spec) {
        for (size_t i = 0; i < spec->n_events; i++)
                event_done(&spec->events[i]);
        free(spec->events);
        cpuset_done(&spec->cpus);
        *spec = MONITOR_SPEC_NULL;
}

static int event_add(MonitorSpec *spec, const char *string, Refusal *why) {
        Event *events = reallocarray(spec->events, spec->n_events + 1, sizeof(Event));
        int r;

        if (!events)
                return -ENOMEM;
        spec->events = events;
        r = event_parse(spec->pmus, string, &spec->events[spec->n_events], why);
        spec->n_events += r == 0;
        return r;
}

static int events_set(MonitorSpec *spec, const char *value, Refusal *why) {
        _cleanup_free_ char *words = strdup(value);
        char *rest = NULL;
        int r = 0;

        if (!words)
                return -ENOMEM;
        for (char *word = strtok_r(words, " \t", &rest); word && r == 0;
             word = strtok_r(NULL, " \t", &rest))
                for (char *event; r == 0 && (event = event_list_next(&word));)
                        r = event_add(spec, event, why);
        return r;
}

static int cpus_set(MonitorSpec *spec, const char *value, Refusal *why) {
        int r;

        cpuset_done(&spec->cpus); /* the last setting counts */
        r = cpuset_parse(&spec->cpus, value, why);
        if (r != 0)
                return r;
        if (cpuset_is_empty(&spec->cpus) || !cpuset_is_subset(&spec->cpus, &spec->pmus->present))
                return refuse(why, REFUSAL_INVALID_ARGS, "Cpus=%s: not all of these CPUs exist",
                              value);
        spec->has_cpus = true;
        return 0;
}

static int group_set(MonitorSpec *spec, const char *value, Refusal *why) {
        if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
                return refuse(why, REFUSAL_INVALID_ARGS, "Group=%s: neither yes nor no", value);
        spec->group = strcmp(value, "yes") == 0;
        return 0;
}

static int yield_set(MonitorSpec *spec, const char *value, Refusal *why) {
        if (strcmp(value, "always") == 0)
                spec->yields_to = PLAN_ALWAYS;
        else if (strcmp(value, "exclusive") == 0)
                spec->yields_to = PLAN_EXCLUSIVE;
        else if (strcmp(value, "never") == 0)
                spec->yields_to = PLAN_NEVER;
        else
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "Yield=%s: not one of always, exclusive, never", value);
        return 0;
}

static int priority_set(MonitorSpec *spec, const char *value, Refusal *why) {
        char *end;
        unsigned long n = strtoul(value, &end, 10);

        if (*value < '0' || *value > '9' || *end || n > UINT32_MAX)
                return refuse(why, REFUSAL_INVALID_ARGS, "Priority=%s: not a number from 0 to %u",
                              value, UINT32_MAX);
        spec->priority = (uint32_t) n;
        return 0;
}

static int interval_set(MonitorSpec *spec, const char *value, Refusal *why) {
        if (timespan_parse(value, &spec->interval_usec) < 0 || spec->interval_usec < USEC_PER_SEC)
                return refuse(why, REFUSAL_INVALID_ARGS, "Interval=%s: not a time of at least 1s",
                              value);
        return 0;
}

static int setting_set(void *userdata, const char *section, const char *name, const char *value,
                       Refusal *why) {
        static const struct {
                const char *name;
                int (*set)(MonitorSpec *spec, const char *value, Refusal *why);
        } settings[] = {
                { "Events", events_set },     { "Cpus", cpus_set },
                { "Group", group_set },       { "Yield", yield_set },
                { "Priority", priority_set }, { "Interval", interval_set },
        };

        if (strcmp(section, "Monitor") != 0)
                return refuse(why, REFUSAL_INVALID_ARGS, "unknown section [%s]", section);
        for (size_t i = 0; i < ELEMENTSOF(settings); i++)
                if (strcmp(name, settings[i].name) == 0)
                        return settings[i].set(userdata, value, why);
        return refuse(why, REFUSAL_INVALID_ARGS, "unknown setting %s=", name);
}

int monitor_spec_read(MonitorSpec *spec, const PmuTable *pmus, const ConfigFile *file) {
        int r;

        spec->pmus = pmus;
        r = config_file_parse(file, setting_set, spec);
        if (r == 0 && spec->n_events == 0) {
                log_plain(LOG_WARNING, "%s:1: names no Events=", file->path);
                r = 1;
        }
        return r;
}

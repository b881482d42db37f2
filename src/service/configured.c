/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "configured.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/timespan.h"
#include "service/config-file.h"
#include "service/counter.h"
#include "service/log.h"

#define SUFFIX ".conf"

/* What a file says. */
typedef struct MonitorSpec {
        const PmuTable *pmus;
        Event *events;
        size_t n_events;
        CpuSet cpus;
        bool has_cpus, group;
        PlanClass yields_to;
        uint32_t priority;
        uint64_t interval_usec;
} MonitorSpec;

struct Configured {
        Service *service;
        char *name; /* of the file, without the suffix */
        char *text; /* of the file, to see whether it has changed */
        CounterSet **sets;
        size_t n_sets;
        uint64_t interval_usec;
        sd_event_source *timer;
        bool present; /* its file was there at the last look */
        LIST_ENTRY(Configured) configured;
};

static void spec_done(MonitorSpec *spec) {
        for (size_t i = 0; i < spec->n_events; i++)
                event_done(&spec->events[i]);
        free(spec->events);
        cpuset_done(&spec->cpus);
}

/* ---- settings ---- */

static int events_set(MonitorSpec *spec, const char *value, Refusal *why) {
        _cleanup_free_ char *words = strdup(value);
        char *rest = NULL;

        if (!words)
                return -ENOMEM;
        for (char *word = strtok_r(words, " \t", &rest); word;
             word = strtok_r(NULL, " \t", &rest)) {
                Event *events = reallocarray(spec->events, spec->n_events + 1, sizeof(Event));
                int r;

                if (!events)
                        return -ENOMEM;
                spec->events = events;
                r = event_parse(spec->pmus, word, &spec->events[spec->n_events], why);
                if (r != 0)
                        return r;
                spec->n_events++;
        }
        return 0;
}

static int cpus_set(MonitorSpec *spec, const char *value, Refusal *why) {
        int r = cpuset_parse(&spec->cpus, value, why);

        if (r != 0)
                return r;
        if (cpuset_is_empty(&spec->cpus) || !cpuset_is_subset(&spec->cpus, &spec->pmus->present))
                return refuse(why, REFUSAL_INVALID_ARGS,
                              "Cpus=%s: this machine has not all of them", value);
        spec->has_cpus = true;
        return 0;
}

static int group_set(MonitorSpec *spec, const char *value, Refusal *why) {
        if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
                return refuse(why, REFUSAL_INVALID_ARGS, "Group=%s is neither yes nor no", value);
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
                              "Yield=%s is none of always, exclusive, never", value);
        return 0;
}

static int priority_set(MonitorSpec *spec, const char *value, Refusal *why) {
        char *end;
        unsigned long n = strtoul(value, &end, 10);

        if (*value < '0' || *value > '9' || *end || n > UINT32_MAX)
                return refuse(why, REFUSAL_INVALID_ARGS, "Priority=%s is no number up to %u", value,
                              UINT32_MAX);
        spec->priority = (uint32_t) n;
        return 0;
}

static int interval_set(MonitorSpec *spec, const char *value, Refusal *why) {
        if (timespan_parse(value, &spec->interval_usec) < 0 || spec->interval_usec < USEC_PER_SEC)
                return refuse(why, REFUSAL_INVALID_ARGS, "Interval=%s is no time of at least 1s",
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
                return refuse(why, REFUSAL_INVALID_ARGS, "there is no section [%s]", section);
        for (size_t i = 0; i < ELEMENTSOF(settings); i++)
                if (strcmp(name, settings[i].name) == 0)
                        return settings[i].set(userdata, value, why);
        return refuse(why, REFUSAL_INVALID_ARGS, "there is no setting %s=", name);
}

/* ---- one monitor ---- */

static Configured *configured_free(Configured *c) {
        if (!c)
                return NULL;
        sd_event_source_disable_unref(c->timer);
        for (size_t i = 0; i < c->n_sets; i++)
                counter_set_free(c->sets[i]);
        free(c->sets);
        free(c->name);
        free(c->text);
        free(c);
        return NULL;
}
DEFINE_CLEANUP(Configured *, configured_free)

static int configured_open_set(Configured *c, const MonitorSpec *spec, size_t first, size_t n,
                               Refusal *why) {
        Service *s = c->service;
        CounterSetOptions options = {
                .name = c->name,
                .monitor = true,
                .configured = true,
                .priority = spec->priority,
                .yields_to = spec->yields_to,
        };
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        _cleanup_(group_freep) Group *g = NULL;
        CounterSet *set;
        Counter *counter;
        Event *events;
        int r;

        r = cpuset_intersect(&cpus, &spec->events[first].pmu->cpus,
                             spec->has_cpus ? &spec->cpus : &s->pmus.present);
        if (r == 0)
                r = events_copy(&spec->events[first], n, &events);
        if (r == 0)
                r = group_new(GROUP_CPU, events, n, &g, why);
        if (r == 0)
                r = group_add_cpus(g, &cpus, &s->pmus.online);
        if (r != 0)
                return r;
        options.cpus = &cpus;
        r = counter_set_new(s, TAKE_PTR(g), &options, &set, why);
        if (r != 0)
                return r;
        c->sets[c->n_sets++] = set;
        for (size_t i = 0; i < n && r == 0; i++)
                r = counter_new(set, i, &counter);
        group_start(set->group);
        return r;
}

static int configured_open(Configured *c, const MonitorSpec *spec, Refusal *why) {
        size_t step = spec->group ? spec->n_events : 1;

        c->sets = calloc(spec->n_events, sizeof(CounterSet *));
        if (!c->sets)
                return -ENOMEM;
        for (size_t first = 0; first < spec->n_events; first += step) {
                int r = configured_open_set(c, spec, first, step, why);

                if (r != 0)
                        return r;
        }
        return 0;
}

/* Interval=: what was counted goes to the journal every so often. */
static int configured_report(sd_event_source *source, uint64_t usec, void *userdata) {
        Configured *c = userdata;

        for (size_t i = 0; i < c->n_sets; i++)
                for (size_t event = 0; event < c->sets[i]->group->n_events; event++) {
                        const char *name = c->sets[i]->group->events[event].name;
                        Reading reading;
                        Quality quality;

                        group_read(c->sets[i]->group, event, &reading, &quality);
                        log_plain(LOG_INFO,
                                  "Monitor %s: %s %" PRIu64 " (%s, enabled %" PRIu64
                                  " ns, running %" PRIu64 " ns)",
                                  c->name, name, reading.value, quality_name(quality),
                                  reading.enabled, reading.running);
                }
        (void) sd_event_source_set_time(source, usec + c->interval_usec);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int configured_new(Service *s, const char *name, const ConfigFile *file,
                          const MonitorSpec *spec, Configured **ret, Refusal *why) {
        _cleanup_(configured_freep) Configured *c = calloc(1, sizeof(Configured));
        int r;

        if (!c)
                return -ENOMEM;
        *c = (Configured){ .service = s,
                           .name = strdup(name),
                           .text = strdup(file->text),
                           .interval_usec = spec->interval_usec,
                           .present = true };
        if (!c->name || !c->text)
                return -ENOMEM;
        r = configured_open(c, spec, why);
        if (r == 0 && spec->interval_usec != UINT64_MAX)
                r = sd_event_add_time_relative(s->event, &c->timer, CLOCK_BOOTTIME,
                                               spec->interval_usec, USEC_PER_SEC, configured_report,
                                               c);
        if (r != 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

/* ---- the directory ---- */

static Configured *configured_find(Service *s, const char *name) {
        Configured *c;

        LIST_FOREACH (c, &s->configured, configured)
                if (strcmp(c->name, name) == 0)
                        return c;
        return NULL;
}

static void configured_remove(Configured *c) {
        LIST_REMOVE(c, configured);
        configured_free(c);
}

static int configured_apply(Service *s, const char *name, const ConfigFile *file, Configured *old) {
        _cleanup_(spec_done) MonitorSpec spec = { .pmus = &s->pmus, .interval_usec = UINT64_MAX };
        Refusal why = REFUSAL_NULL;
        Configured *c;
        int r;

        r = config_file_parse(file, setting_set, &spec);
        if (r < 0)
                return r;
        if (r == 0 && spec.n_events == 0) {
                log_plain(LOG_WARNING, "%s:1: names no Events=", file->path);
                r = 1;
        }
        if (r > 0) {
                log_plain(LOG_WARNING, "%s: refused%s", file->path,
                          old ? "; what it said before stays" : "");
                return 0;
        }
        if (old)
                configured_remove(old); /* first: there may not be counters for both */
        r = configured_new(s, name, file, &spec, &c, &why);
        if (r < 0)
                return r;
        if (r > 0)
                log_plain(LOG_WARNING, "%s: cannot be opened: %s", file->path, why.text);
        else
                LIST_INSERT_HEAD(&s->configured, c, configured);
        return 0;
}

static int configured_load_file(Service *s, const char *directory, const char *file_name) {
        _cleanup_(config_file_done) ConfigFile file = CONFIG_FILE_NULL;
        _cleanup_free_ char *path = NULL, *name = NULL;
        Configured *old;
        int r;

        name = strndup(file_name, strlen(file_name) - strlen(SUFFIX));
        if (!name || asprintf(&path, "%s/%s", directory, file_name) < 0)
                return -ENOMEM;
        old = configured_find(s, name);
        if (old)
                old->present = true; /* also when it cannot be read now */
        r = config_file_read(path, &file);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        if (old && strcmp(old->text, file.text) == 0)
                return 0;
        return configured_apply(s, name, &file, old);
}

static int is_monitor(const struct dirent *e) {
        size_t n = strlen(e->d_name);

        return e->d_name[0] != '.' && n > strlen(SUFFIX) &&
               strcmp(e->d_name + n - strlen(SUFFIX), SUFFIX) == 0;
}

int configured_load(Service *s, const char *directory) {
        struct dirent **entries = NULL;
        int n = scandir(directory, &entries, is_monitor, alphasort), r = 0;
        Configured *c, *next;

        if (n < 0 && errno == ENOMEM)
                return -ENOMEM;
        if (n < 0 && errno != ENOENT) {
                log_plain(LOG_WARNING, "%s: cannot be read: %s", directory, strerror(errno));
                return 0;
        }
        LIST_FOREACH (c, &s->configured, configured)
                c->present = false;
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = configured_load_file(s, directory, entries[i]->d_name);
                free(entries[i]);
        }
        free(entries);
        for (c = LIST_FIRST(&s->configured); c && r == 0; c = next) {
                next = LIST_NEXT(c, configured);
                if (!c->present)
                        configured_remove(c);
        }
        return r;
}

void configured_done(Service *s) {
        while (!LIST_EMPTY(&s->configured))
                configured_remove(LIST_FIRST(&s->configured));
}

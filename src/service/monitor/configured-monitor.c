/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "configured-monitor.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/tick.h"
#include "core/utf8.h"
#include "perf/group/group-cpu.h"
#include "perf/group/group-read.h"
#include "perf/group/group-start.h"
#include "service/counter/counter-store.h"
#include "service/counter/counter.h"
#include "service/monitor/monitor-report.h"
#include "service/monitor/monitor-spec.h"
#include "service/util/config-file.h"
#include "service/util/log.h"

#define SUFFIX ".conf"

struct ConfiguredMonitor {
        ConfiguredMonitors *all;
        char *name; /* of the file, without the suffix */
        char *text; /* of the file, to detect changes */
        CounterSet **sets;
        size_t n_sets;
        Tick tick; /* of the reports: CLOCK_BOOTTIME */
        sd_event_source *timer;
        LIST_ENTRY(ConfiguredMonitor) configured;
};

/* ---- one monitor ---- */

static ConfiguredMonitor *configured_free(ConfiguredMonitor *c) {
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
DEFINE_CLEANUP(ConfiguredMonitor *, configured_free)

/* The CPUs on which the monitor counts the event. */
static int spec_cpus(const MonitorSpec *spec, const Event *e, CpuSet *ret) {
        _cleanup_(cpuset_done) CpuSet all = CPUSET_NULL;
        int r = event_cpus(e, &all);

        return r < 0 ? r
                     : cpuset_intersect(ret, &all,
                                        spec->has_cpus ? &spec->cpus : &spec->pmus->present);
}

static int configured_open_set(ConfiguredMonitor *c, const MonitorSpec *spec, size_t first,
                               size_t n, CounterSet **ret, Refusal *why) {
        CounterSetOptions options = {
                .name = c->name,
                .monitor = true,
                .configured = true,
                .priority = spec->priority,
                .yields_to = spec->yields_to,
        };
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        _cleanup_(group_freep) Group *g = NULL;
        Counter *counter;
        Event *events;
        int r;

        r = spec_cpus(spec, &spec->events[first], &cpus);
        if (r == 0)
                r = events_copy(&spec->events[first], n, &events);
        if (r == 0)
                r = group_new(GROUP_CPU, events, n, &g, why);
        if (r == 0)
                r = group_add_cpus(g, &cpus, &c->all->counters->context->pmus.online);
        if (r != 0)
                return r;
        options.cpus = &cpus;
        r = counter_set_new(c->all->counters, TAKE_PTR(g), &options, ret, why);
        if (r == 0)
                r = counter_sets_open(ret, 1, why);
        for (size_t i = 0; i < n && r == 0; i++)
                r = counter_new(*ret, i, &counter);
        if (r != 0)
                return r;
        group_start((*ret)->group);
        counter_set_save(*ret);
        return 0;
}

/* ---- what an earlier run has left ---- */

static bool set_counts(const CounterSet *set, const MonitorSpec *spec, size_t first, size_t n) {
        const PlanMonitor *plan = &set->yielder->yielder.plan;

        if (set->group->scope != GROUP_CPU || set->group->n_events != n ||
            plan->priority != spec->priority || plan->klass != spec->yields_to)
                return false;
        for (size_t i = 0; i < n; i++) {
                const Event *a = &set->group->events[i], *b = &spec->events[first + i];

                if (strcmp(a->name, b->name) != 0 || a->pmu != b->pmu ||
                    memcmp(&a->attr, &b->attr, sizeof(a->attr)) != 0)
                        return false;
        }
        return true;
}

/* Takes over a set that counts exactly what the file says, with its values. *ret stays NULL if
 * there is none. */
static int configured_claim_set(const ConfiguredMonitor *c, const MonitorSpec *spec, size_t first,
                                size_t n, CounterSet **ret) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        _cleanup_free_ char *list = NULL;
        CounterSet *set;
        int r;

        r = spec_cpus(spec, &spec->events[first], &cpus);
        if (r == 0)
                r = cpuset_format(&cpus, &list);
        if (r < 0)
                return r;
        LIST_FOREACH (set, &c->all->counters->sets, sets)
                if (set->unclaimed && strcmp(set->name, c->name) == 0 &&
                    strcmp(set->cpus, list) == 0 && set_counts(set, spec, first, n)) {
                        set->unclaimed = false;
                        *ret = set;
                        break;
                }
        return 0;
}

static void configured_drop_unclaimed(ConfiguredMonitors *all,
                                      bool (*goes)(const void *userdata, const char *name),
                                      const void *userdata) {
        CounterSet *set, *next;

        for (set = LIST_FIRST(&all->counters->sets); set; set = next) {
                next = LIST_NEXT(set, sets);
                if (set->unclaimed && goes(userdata, set->name))
                        counter_set_free(set);
        }
}

static bool is_of(const void *userdata, const char *name) {
        const ConfiguredMonitor *c = userdata;

        return strcmp(name, c->name) == 0;
}

static int configured_open(ConfiguredMonitor *c, const MonitorSpec *spec, Refusal *why) {
        size_t step = spec->group ? spec->n_events : 1;
        int r = 0;

        c->sets = calloc(spec->n_events, sizeof(CounterSet *));
        if (!c->sets)
                return -ENOMEM;
        c->n_sets = spec->n_events / step;
        for (size_t i = 0; i < c->n_sets && r == 0; i++)
                r = configured_claim_set(c, spec, i * step, step, &c->sets[i]);
        /* first, because there may not be counters for both */
        configured_drop_unclaimed(c->all, is_of, c);
        store_settle(c->all->counters->context->store);
        for (size_t i = 0; i < c->n_sets && r == 0; i++)
                if (!c->sets[i])
                        r = configured_open_set(c, spec, i * step, step, &c->sets[i], why);
        return r;
}

static void configured_report(const ConfiguredMonitor *c) {
        for (size_t i = 0; i < c->n_sets; i++) {
                group_refresh(c->sets[i]->group);
                for (size_t event = 0; event < c->sets[i]->group->n_events; event++) {
                        char text[MONITOR_REPORT_MAX];
                        Reading reading;

                        group_sum(c->sets[i]->group, event, &reading);
                        log_plain(LOG_INFO, "%s",
                                  monitor_report(c->name, &c->sets[i]->group->events[event],
                                                 &reading, text));
                }
        }
}

/* Interval=: logs periodically what was counted. Reports that were missed while the machine was
 * suspended are skipped. */
static int configured_tick(sd_event_source *source, uint64_t usec, void *userdata) {
        ConfiguredMonitor *c = userdata;
        uint64_t slot;

        if (tick_take(&c->tick, now_usec(CLOCK_BOOTTIME), &slot))
                configured_report(c);
        (void) sd_event_source_set_time(source, tick_due(&c->tick));
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int configured_start_reports(ConfiguredMonitor *c, uint64_t interval_usec) {
        uint64_t interval = MIN(interval_usec, TICK_FAR_USEC);

        c->tick = (Tick){ .start_usec = now_usec(CLOCK_BOOTTIME) + interval,
                          .interval_usec = interval };
        return sd_event_add_time(c->all->counters->context->event, &c->timer, CLOCK_BOOTTIME,
                                 tick_due(&c->tick), USEC_PER_SEC, configured_tick, c);
}

static int configured_new(ConfiguredMonitors *all, const char *name, const ConfigFile *file,
                          const MonitorSpec *spec, ConfiguredMonitor **ret, Refusal *why) {
        _cleanup_(configured_freep) ConfiguredMonitor *c = calloc(1, sizeof(ConfiguredMonitor));
        int r;

        if (!c)
                return -ENOMEM;
        *c = (ConfiguredMonitor){ .all = all, .name = strdup(name), .text = strdup(file->text) };
        if (!c->name || !c->text)
                return -ENOMEM;
        r = configured_open(c, spec, why);
        if (r == 0 && spec->interval_usec != UINT64_MAX)
                r = MIN(configured_start_reports(c, spec->interval_usec), 0);
        if (r != 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

/* ---- the directory ---- */

static ConfiguredMonitor *configured_find(ConfiguredMonitors *all, const char *name) {
        ConfiguredMonitor *c;

        LIST_FOREACH (c, &all->list, configured)
                if (strcmp(c->name, name) == 0)
                        return c;
        return NULL;
}

static void configured_remove(ConfiguredMonitor *c) {
        LIST_REMOVE(c, configured);
        configured_free(c);
}

static int configured_apply(ConfiguredMonitors *all, const char *name, const ConfigFile *file,
                            ConfiguredMonitor *old) {
        _cleanup_(monitor_spec_done) MonitorSpec spec = MONITOR_SPEC_NULL;
        Refusal why = REFUSAL_NULL;
        ConfiguredMonitor *c;
        int r;

        r = monitor_spec_read(&spec, &all->counters->context->pmus, file);
        if (r < 0)
                return r;
        if (r > 0) {
                log_plain(LOG_WARNING, "%s: not used because of an error%s", file->path,
                          old ? "; the monitor stays as it was" : "");
                return 0;
        }
        if (old)
                configured_remove(old); /* first, because there may not be counters for both */
        r = configured_new(all, name, file, &spec, &c, &why);
        if (r < 0)
                return r;
        if (r > 0)
                log_plain(LOG_WARNING, "%s: the monitor cannot be opened: %s", file->path,
                          why.text);
        else
                LIST_INSERT_HEAD(&all->list, c, configured);
        return 0;
}

static int configured_load_file(ConfiguredMonitors *all, const char *directory,
                                const char *file_name) {
        _cleanup_(config_file_done) ConfigFile file = CONFIG_FILE_NULL;
        _cleanup_free_ char *path = NULL, *name = NULL;
        ConfiguredMonitor *old;
        int r;

        name = strndup(file_name, strlen(file_name) - strlen(SUFFIX));
        if (!name || asprintf(&path, "%s/%s", directory, file_name) < 0)
                return -ENOMEM;
        old = configured_find(all, name);
        r = config_file_read(path, &file);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        if (old && strcmp(old->text, file.text) == 0)
                return 0;
        return configured_apply(all, name, &file, old);
}

static int is_monitor(const struct dirent *e) {
        size_t n = strlen(e->d_name);

        if (e->d_name[0] == '.' || n <= strlen(SUFFIX) ||
            strcmp(e->d_name + n - strlen(SUFFIX), SUFFIX) != 0)
                return 0;
        if (utf8_is_text(e->d_name))
                return 1;
        log_plain(LOG_WARNING,
                  "monitors.d: a file is not used, for its name is not UTF-8, or has control "
                  "characters.");
        return 0;
}

typedef struct Entries {
        struct dirent **entries;
        int n;
} Entries;

static void entries_done(Entries *e) {
        for (int i = 0; i < e->n; i++)
                free(e->entries[i]);
        free(e->entries);
}

static bool has_no_file(const void *userdata, const char *name) {
        const Entries *e = userdata;
        size_t n = strlen(name);

        for (int i = 0; i < e->n; i++)
                if (strncmp(e->entries[i]->d_name, name, n) == 0 &&
                    strcmp(e->entries[i]->d_name + n, SUFFIX) == 0)
                        return false;
        return true;
}

int configured_load(ConfiguredMonitors *all, const char *directory) {
        _cleanup_(entries_done) Entries e = {};
        ConfiguredMonitor *c, *next;
        int r = 0;

        e.n = scandir(directory, &e.entries, is_monitor, alphasort);
        if (e.n < 0 && errno == ENOMEM)
                return -ENOMEM;
        if (e.n < 0 && errno != ENOENT) {
                log_plain(LOG_WARNING, "%s: cannot be read: %s", directory, strerror(errno));
                return 0;
        }
        configured_drop_unclaimed(all, has_no_file, &e);
        for (int i = 0; i < e.n && r == 0; i++)
                r = configured_load_file(all, directory, e.entries[i]->d_name);
        for (c = LIST_FIRST(&all->list); c && r == 0; c = next) {
                next = LIST_NEXT(c, configured);
                if (has_no_file(&e, c->name))
                        configured_remove(c);
        }
        return r;
}

void configured_done(ConfiguredMonitors *all) {
        ConfiguredMonitor *c;

        while ((c = LIST_FIRST(&all->list))) {
                c->n_sets = 0; /* counters_done() closes or keeps them */
                configured_remove(c);
        }
}

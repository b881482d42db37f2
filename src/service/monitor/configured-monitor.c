/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "configured-monitor.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/tick.h"
#include "core/utf8.h"
#include "perf/group/group-read.h"
#include "service/monitor/configured-sets.h"
#include "service/monitor/monitor-report.h"
#include "service/util/config-file.h"
#include "service/util/log.h"

#define SUFFIX     ".conf"
#define RETRY_USEC USEC_PER_SEC

struct ConfiguredMonitor {
        ConfiguredMonitors *all;
        char *name; /* of the file, without the suffix */
        char *text; /* of the file, to detect changes */
        ConfiguredSets sets;
        bool counts; /* all of them, and none of an earlier version is left */
        Tick tick;   /* of the reports: CLOCK_BOOTTIME */
        sd_event_source *timer;
        LIST_ENTRY(ConfiguredMonitor) configured;
};

/* ---- one monitor ---- */

/* Its counters stay. */
static ConfiguredMonitor *configured_free(ConfiguredMonitor *c) {
        if (!c)
                return NULL;
        sd_event_source_disable_unref(c->timer);
        configured_sets_done(&c->sets);
        free(c->name);
        free(c->text);
        free(c);
        return NULL;
}
DEFINE_CLEANUP(ConfiguredMonitor *, configured_free)

static void configured_report(const ConfiguredMonitor *c) {
        for (size_t i = 0; i < c->sets.n; i++) {
                Group *g = c->sets.sets[i]->group;

                group_refresh(g);
                for (size_t event = 0; event < g->n_events; event++) {
                        char text[MONITOR_REPORT_MAX];
                        Reading reading;

                        group_sum(g, event, &reading);
                        log_plain(LOG_INFO, "%s",
                                  monitor_report(c->name, &g->events[event], &reading, text));
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
        c->sets = (ConfiguredSets){ .counters = all->counters, .name = c->name };
        r = spec->interval_usec != UINT64_MAX ? configured_start_reports(c, spec->interval_usec)
                                              : 0;
        if (r >= 0)
                r = configured_sets_open(&c->sets, spec, why);
        if (r != 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

/* ---- until they count ---- */

static int configured_arm(ConfiguredMonitors *all);

static int configured_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        ConfiguredMonitors *all = userdata;
        ConfiguredMonitor *c;
        bool again = false;

        LIST_FOREACH (c, &all->list, configured) {
                c->counts = c->counts || configured_sets_retry(&c->sets);
                again |= !c->counts;
        }
        return again ? configured_arm(all) : 0;
}

static int configured_arm(ConfiguredMonitors *all) {
        int r = 0;

        if (!all->retry)
                r = sd_event_add_time(all->counters->context->event, &all->retry, CLOCK_MONOTONIC,
                                      0, USEC_PER_SEC / 10, configured_retry, all);
        if (r >= 0)
                r = sd_event_source_set_time_relative(all->retry, RETRY_USEC);
        if (r >= 0)
                r = sd_event_source_set_enabled(all->retry, SD_EVENT_ONESHOT);
        return MIN(r, 0);
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
        r = configured_new(all, name, file, &spec, &c, &why);
        if (r < 0)
                return r;
        if (r > 0) {
                log_plain(LOG_WARNING, "%s: the monitor cannot be opened%s: %s", file->path,
                          old ? ", and stays as it was" : "", why.text);
                return 0;
        }
        if (old)
                configured_remove(old);
        LIST_INSERT_HEAD(&all->list, c, configured);
        c->counts = configured_sets_retry(&c->sets);
        return c->counts ? 0 : configured_arm(all);
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
                  "monitors.d: a file is not used, because its name is not UTF-8 or has control "
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
        for (c = LIST_FIRST(&all->list); c; c = next) {
                next = LIST_NEXT(c, configured);
                if (has_no_file(&e, c->name))
                        configured_remove(c);
        }
        configured_sets_close(all->counters, has_no_file, &e);
        for (int i = 0; i < e.n && r == 0; i++)
                r = configured_load_file(all, directory, e.entries[i]->d_name);
        return r;
}

void configured_done(ConfiguredMonitors *all) {
        while (!LIST_EMPTY(&all->list))
                configured_remove(LIST_FIRST(&all->list));
        all->retry = sd_event_source_disable_unref(all->retry);
}

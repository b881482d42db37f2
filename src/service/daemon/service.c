/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "core/clock.h"
#include "perf/group/switch.h"
#include "perf/pmu/kernel.h"
#include "perf/pmu/looks.h"
#include "service/auth/auth.h"
#include "service/auth/redaction.h"
#include "service/bus/bus-lost.h"
#include "service/bus/managed.h"
#include "service/bus/passed-sockets.h"
#include "service/bus/scheduler.h"
#include "service/counter/counter-bus.h"
#include "service/daemon/cpu-watch.h"
#include "service/daemon/idle-exit.h"
#include "service/daemon/manager-bus.h"
#include "service/daemon/status-line.h"
#include "service/daemon/unit-job.h"
#include "service/hold/hold-bus.h"
#include "service/hold/hold-restore.h"
#include "service/monitor/monitor-bus.h"
#include "service/pmu/pmu-bus.h"
#include "service/sampler/sampler-bus.h"
#include "service/store/restore-watch.h"
#include "service/util/log.h"

#define BUS_AWAIT_SEC 60 /* less than systemd's TimeoutStartSec= */

/* An iteration of the loop that takes no longer has not waited: there are more messages. So many of
 * them are handled before the next one, for so long. */
#define FLOOD_GAP_USEC 100u
#define FLOOD_MAX      32u
#define FLOOD_USEC     USEC_PER_MSEC

struct Service {
        Manager manager;
        Scheduler *scheduler;
        Managed *managed;
        IdleExit *idle_exit;
        StatusLine *status_line;
        Opener *opener;
        char *config_path, *monitors_directory;
        CpuWatch *cpu_watch;
};

/* ---- what it is told ---- */

static void reader_died(void *userdata) {
        Manager *m = userdata;

        log_event(LOG_ERR, LOG_ID_DEGRADED,
                  "The reader process has died; the service exits and is restarted.", NULL);
        (void) sd_event_exit(m->context.event, EXIT_FAILURE);
}

static void opener_died(void *userdata) {
        Manager *m = userdata;

        log_event(LOG_ERR, LOG_ID_DEGRADED,
                  "The opener process has died; the service exits and is restarted.", NULL);
        (void) sd_event_exit(m->context.event, EXIT_FAILURE);
}

static void service_touched(void *userdata) {
        Service *s = userdata;

        idle_exit_touch(s->idle_exit);
        status_line_touch(s->status_line);
}

/* ---- the bus ---- */

/* A bus that is being restarted is not there for a moment, and sometimes for longer. Waiting here
 * avoids that the service is restarted again and again meanwhile. */
static int bus_await(sd_bus **ret) {
        const struct timespec pause = { .tv_sec = 1 };
        sigset_t signals;
        int r = -ENOENT;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigaddset(&signals, SIGINT);
        for (int i = 0; i < BUS_AWAIT_SEC; i++) {
                r = sd_bus_open_system(ret);
                if (r != -ENOENT && r != -ECONNREFUSED)
                        return r;
                if (i == 0)
                        log_plain(LOG_WARNING, "There is no system bus; waiting for it.");
                if (sigtimedwait(&signals, NULL, &pause) >= 0)
                        return -ECANCELED;
        }
        return r;
}

static int service_connect(Context *context) {
        int r = bus_await(&context->bus);

        if (r >= 0)
                r = sd_bus_attach_event(context->bus, context->event, 0);
        if (r >= 0)
                r = passed_sockets_replace(context->bus);
        if (r >= 0)
                r = sd_bus_set_exit_on_disconnect(context->bus, true);
        if (r >= 0) /* bus-end.h does it */
                r = sd_bus_set_close_on_exit(context->bus, false);
        if (r >= 0) /* libsystemd closes the connection when an AddMatch times out */
                r = sd_bus_set_method_call_timeout(context->bus, UINT64_MAX);
        return r < 0 ? r : bus_lost_init(context->bus);
}

/* libsystemd runs the filter that was added last first. */
static int service_add_filters(Service *s) {
        Manager *m = &s->manager;
        Context *context = &m->context;
        int r = redaction_new(context, &context->redaction);

        if (r >= 0)
                r = idle_exit_new(context, manager_is_idle, m, &s->idle_exit);
        if (r >= 0)
                r = status_line_new(m, &s->status_line);
        if (r >= 0)
                r = scheduler_new(context, manager_forget_peer, m, &s->scheduler);
        if (r >= 0)
                r = managed_new(context, &s->managed);
        return r;
}

static int service_register(Manager *m) {
        int r = manager_bus_register(m);

        if (r >= 0)
                r = hold_bus_register(&m->holds);
        if (r >= 0)
                r = counter_bus_register(&m->counters);
        if (r >= 0)
                r = monitor_bus_register(&m->monitors);
        if (r >= 0)
                r = sampler_bus_register(&m->samplers);
        if (r >= 0)
                r = pmu_bus_register(m->probing);
        return r;
}

static int service_open_bus(Service *s) {
        Context *context = &s->manager.context;
        int r = service_connect(context);

        if (r >= 0)
                r = service_add_filters(s);
        if (r >= 0)
                r = auth_new(context, &context->auth);
        if (r < 0)
                return r;
        auth_set_waiting_max(context->auth, (unsigned) context->config.limits[QUOTA_CALLS]);
        return service_register(&s->manager);
}

/* ---- configuration and signals ---- */

/* Limits apply to what is created from now on. */
static void service_load_config(Service *s) {
        Context *context = &s->manager.context;

        config_default(&context->config);
        config_load(&context->config, s->config_path);
        memcpy(context->quota.limits, context->config.limits, sizeof(context->config.limits));
        if (context->auth)
                auth_set_waiting_max(context->auth, (unsigned) context->config.limits[QUOTA_CALLS]);
}

static int stop(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Service *s = userdata;

        (void) sd_notify(false, "STOPPING=1");
        s->manager.ends = unit_job_is_stop();
        return sd_event_exit(s->manager.context.event, EXIT_SUCCESS);
}

static int reload(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Service *s = userdata;
        Manager *m = &s->manager;
        int r;

        if (idle_exit_is_leaving(s->idle_exit))
                return 0; /* the successor reads it */
        (void) sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_usec(CLOCK_MONOTONIC));
        service_load_config(s);
        r = configured_load(&m->configured, s->monitors_directory);
        if (r < 0)
                log_plain(LOG_ERR, "Some configured monitors could not be read again: %s",
                          strerror(-r));
        r = bridges_load(m->bridges);
        if (r < 0)
                log_plain(LOG_ERR, "Some bridges could not be restarted: %s", strerror(-r));
        log_plain(LOG_INFO, "Configuration read again.");
        (void) sd_notify(false, "READY=1");
        context_touch(&m->context);
        return 0;
}

static int service_make_loop(Service *s) {
        Context *context = &s->manager.context;
        int r = sd_event_new(&context->event);

        if (r >= 0)
                r = turns_init(&context->turns, context->event);
        if (r >= 0)
                r = sd_event_add_signal(context->event, NULL, SIGTERM, stop, s);
        if (r >= 0)
                r = sd_event_add_signal(context->event, NULL, SIGINT, stop, s);
        if (r >= 0)
                r = sd_event_add_signal(context->event, NULL, SIGHUP, reload, s);
        if (r >= 0)
                r = sd_event_set_watchdog(context->event, true);
        if (r >= 0)
                r = reader_attach_event(context->reader, context->event, reader_died, &s->manager);
        if (r >= 0)
                r = opener_attach_event(s->opener, context->event, opener_died, &s->manager);
        if (r >= 0)
                r = cpu_watch_new(&s->manager, &s->cpu_watch);
        return r;
}

/* monitors.d is beside the configuration file. */
static int service_set_paths(Service *s, const char *config_path) {
        const char *slash = strrchr(config_path, '/');

        s->config_path = strdup(config_path);
        if (!s->config_path ||
            asprintf(&s->monitors_directory, "%.*s/monitors.d",
                     slash ? (int) (slash - config_path) : 1, slash ? config_path : ".") < 0)
                return -ENOMEM;
        return 0;
}

/* ---- start ---- */

/* On a machine with many CPUs they are looked at and switched side by side. */
static void service_start_teams(const CpuSet *online) {
        _cleanup_(cpuset_done) CpuSet allowed = CPUSET_NULL, cpus = CPUSET_NULL, team = CPUSET_NULL,
                                      others = CPUSET_NULL;
        int r = kernel_allowed(&allowed);

        if (r >= 0)
                r = cpuset_intersect(&cpus, &allowed, online);
        if (r >= 0)
                r = looks_divide(&cpus, &team, &others);
        if (r >= 0)
                r = looks_start(&team, &others);
        if (r < 0)
                log_plain(LOG_WARNING, "Cannot start threads: %s. CPUs are measured one by one.",
                          strerror(-r));
        switches_set_team(looks_team());
}

int service_new(Reader *reader, Opener *opener, const char *config_path, Service **ret) {
        _cleanup_(service_freep) Service *s = calloc(1, sizeof(Service));
        int r;

        if (!s) {
                reader_free(reader);
                opener_free(opener);
                return -ENOMEM;
        }
        s->opener = opener;
        manager_init(&s->manager, reader);
        r = service_set_paths(s, config_path);
        if (r < 0)
                return r;
        service_load_config(s);
        r = service_make_loop(s);
        if (r >= 0)
                r = manager_start(&s->manager);
        if (r >= 0)
                r = service_open_bus(s);
        if (r < 0)
                return r;
        service_start_teams(&s->manager.context.pmus.online);
        s->manager.context.touched = service_touched;
        s->manager.context.userdata = s;
        *ret = TAKE_PTR(s);
        return 0;
}

/* ---- the loop ---- */

/* Handles a message that was put back into the bus's queue: libsystemd would arm a timer for it and
 * sleep. One per iteration of the loop, because other events wait as well. */
static void process_queued(const Context *context) {
        uint64_t n = 0;
        int code;

        if (sd_event_get_exit_code(context->event, &code) == -ENODATA &&
            sd_bus_get_n_queued_read(context->bus, &n) >= 0 && n > 0)
                (void) sd_bus_process(context->bus, NULL); /* the loop notices errors of the bus */
}

/* Handles more of the messages that have arrived. Waiting for events takes longer than most
 * messages do, so that a flood of them would delay the calls behind it. */
static void process_flood(const Context *context) {
        uint64_t until = now_usec(CLOCK_MONOTONIC) + FLOOD_USEC;
        int code;

        for (unsigned i = 0; i < FLOOD_MAX && now_usec(CLOCK_MONOTONIC) < until; i++)
                if (sd_event_get_exit_code(context->event, &code) != -ENODATA ||
                    sd_bus_process(context->bus, NULL) <= 0)
                        break;
}

static int service_loop(const Context *context) {
        int r = 0, code;

        while (r >= 0 && sd_event_get_state(context->event) != SD_EVENT_FINISHED) {
                uint64_t begun = now_usec(CLOCK_MONOTONIC);

                process_queued(context);
                r = sd_event_run(context->event, UINT64_MAX);
                if (now_usec(CLOCK_MONOTONIC) - begun < FLOOD_GAP_USEC)
                        process_flood(context);
        }
        return r < 0 ? r : sd_event_get_exit_code(context->event, &code) < 0 ? 0 : code;
}

int service_run(Service *s) {
        Manager *m = &s->manager;
        Context *context = &m->context;
        int r;

        r = manager_restore(m);
        if (r < 0) {
                log_plain(LOG_ERR, "Cannot restore the state: %s", strerror(-r));
                if (r != -ENOMEM)
                        restore_watch_failed();
                return r;
        }
        r = sd_bus_request_name(context->bus, PERFALLOC_BUS_NAME, 0);
        if (r < 0) {
                log_plain(LOG_ERR, "Cannot own the bus name %s: %s", PERFALLOC_BUS_NAME,
                          strerror(-r));
                return r;
        }
        r = configured_load(&m->configured, s->monitors_directory);
        if (r < 0)
                return r;
        holds_go_on(&m->holds);
        cpu_watch_catch_up(m);
        restore_watch_end();
        (void) sd_notify(false, "READY=1");
        context_touch(context);
        r = service_loop(context);
        manager_leave(m);
        return r;
}

/* ---- end ---- */

Service *service_free(Service *s) {
        Context *context;

        if (!s)
                return NULL;
        context = &s->manager.context;
        switches_set_team(NULL);
        looks_stop();
        context->touched = NULL; /* what ends now touches nothing any more */
        manager_end(&s->manager);
        idle_exit_free(s->idle_exit);
        status_line_free(s->status_line);
        cpu_watch_free(s->cpu_watch);
        managed_free(s->managed);
        scheduler_free(s->scheduler);
        context->auth = auth_free(context->auth);
        s->opener = opener_free(s->opener);
        manager_done(&s->manager);
        free(s->config_path);
        free(s->monitors_directory);
        free(s);
        return NULL;
}

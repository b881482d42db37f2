/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "core/clock.h"
#include "service/auth/auth.h"
#include "service/auth/redaction.h"
#include "service/bus/bus-lost.h"
#include "service/bus/host-state.h"
#include "service/bus/scheduler.h"
#include "service/counter/attach-job.h"
#include "service/counter/counter-bus.h"
#include "service/counter/counter-restore.h"
#include "service/counter/counter-store.h"
#include "service/daemon/cpu-watch.h"
#include "service/daemon/idle-exit.h"
#include "service/daemon/manager-bus.h"
#include "service/hold/hold-bus.h"
#include "service/hold/hold-obstacles.h"
#include "service/hold/hold-restore.h"
#include "service/monitor/monitor-bus.h"
#include "service/monitor/monitor-restore.h"
#include "service/pmu/capacity.h"
#include "service/pmu/pmu-bus.h"
#include "service/sampler/sampler-bus.h"
#include "service/sampler/sampler-restore.h"
#include "service/util/log.h"

#define BUS_AWAIT_SEC 60 /* less than systemd's TimeoutStartSec= */

struct Service {
        Manager manager;
        Scheduler *scheduler;
        IdleExit *idle_exit;
        char *config_path, *monitors_directory;
        sd_event_source *cpu_watch;
};

/* ---- what one noun tells another ---- */

static void peer_gone(void *userdata, Peer *peer) {
        Manager *m = userdata;

        auth_forget_peer(m->context.auth, peer);
        samplers_forget_peer(&m->samplers, peer);
        counters_forget_peer(&m->counters, peer);
        monitors_forget_peer(&m->monitors, peer);
}

static void reader_died(void *userdata) {
        Manager *m = userdata;

        log_event(LOG_ERR, LOG_ID_DEGRADED,
                  "The reader process has died; the service starts anew to get another one.", NULL);
        (void) sd_event_exit(m->context.event, EXIT_FAILURE);
}

static void yielder_acknowledged(void *userdata) {
        Manager *m = userdata;

        holds_advance(&m->holds);
}

static void hold_requested(void *userdata, pid_t pid) {
        Manager *m = userdata;

        bridges_forget_lock(m->bridges, pid);
}

static void holds_changed(void *userdata) {
        Manager *m = userdata;

        if (m->bridges)
                bridges_hold_changed(m->bridges);
}

static void holds_granted(void *userdata, uid_t uid) {
        Manager *m = userdata;

        counters_hold_changed(&m->counters, uid);
}

static int hold_add_counter(void *userdata, const CounterSet *set) {
        char who[256];

        (void) snprintf(who, sizeof(who), "uid %u counts %s through this service",
                        (unsigned) set->uid, set->group->events[0].pmu->name);
        return hold_add_obstacle(userdata, set->peer ? set->peer->pid : 0, who);
}

static void hold_add_counters(void *userdata, Hold *h, bool foreign) {
        const Manager *m = userdata;
        const Scope *scope = &h->request.what.scope;

        if (foreign)
                (void) counters_foreign(&m->counters, h->object.uid, scope, hold_add_counter, h);
        else
                (void) counters_standing(&m->counters, scope, hold_add_counter, h);
}

static bool manager_is_idle(const void *userdata) {
        const Manager *m = userdata;

        return m->holds.objects.n == 0 && m->monitors.objects.n == 0 &&
               LIST_EMPTY(&m->counters.sets) && samplers_are_idle(&m->samplers);
}

static void service_touched(void *userdata) {
        Service *s = userdata;

        idle_exit_touch(s->idle_exit);
}

/* ---- the bus ---- */

/* A bus that is being started anew is not there for a moment, and may be gone for longer. Who waits
 * in here is not started anew again and again meanwhile. */
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
                r = sd_bus_set_exit_on_disconnect(context->bus, true);
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
                r = scheduler_new(context, peer_gone, m, &s->scheduler);
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

/* Limits hold for what is made from now on. */
static void service_load_config(Service *s) {
        Context *context = &s->manager.context;

        config_default(&context->config);
        config_load(&context->config, s->config_path);
        memcpy(context->quota.limits, context->config.limits, sizeof(context->config.limits));
        if (context->auth)
                auth_set_waiting_max(context->auth, (unsigned) context->config.limits[QUOTA_CALLS]);
}

static int stop(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        const Service *s = userdata;

        (void) sd_notify(false, "STOPPING=1");
        return sd_event_exit(s->manager.context.event, EXIT_SUCCESS);
}

static int reload(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Service *s = userdata;
        Manager *m = &s->manager;
        int r;

        (void) sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_usec(CLOCK_MONOTONIC));
        service_load_config(s);
        r = configured_load(&m->configured, s->monitors_directory);
        if (r < 0)
                log_plain(LOG_ERR, "Configured monitors could not all be read again: %s",
                          strerror(-r));
        r = bridges_load(m->bridges);
        if (r < 0)
                log_plain(LOG_ERR, "Bridges could not all be made anew: %s", strerror(-r));
        log_plain(LOG_INFO, "Configuration read again.");
        (void) sd_notify(false, "READY=1");
        context_touch(&m->context);
        return 0;
}

static int service_make_loop(Service *s) {
        Context *context = &s->manager.context;
        int r = sd_event_new(&context->event);

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
                r = cpu_watch_new(&s->manager, &s->cpu_watch);
        return r;
}

/* monitors.d stands beside the configuration file. */
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

static void service_open_serial(Context *context) {
        int r = serial_open(&context->serial, getenv("RUNTIME_DIRECTORY"));

        if (r < 0)
                log_plain(LOG_WARNING,
                          "No usable runtime directory ($RUNTIME_DIRECTORY): %s. Object "
                          "numbers start from the clock.",
                          strerror(-r));
}

static void service_init(Service *s, Reader *reader) {
        Manager *m = &s->manager;
        Context *context = &m->context;

        context->reader = reader;
        context->objects = &m->objects;
        quota_init(&context->quota);
        ledger_init(&context->ledger);
        yielders_init(&context->yielders, &context->ledger, yielder_acknowledged, m);
        service_open_serial(context);
        m->events = (Events){ .context = context, .holds = &m->holds };
        issued_events_init(&m->events.issued);
        m->monitors = (Monitors){ .context = context, .holds = &m->holds };
        m->configured.counters = &m->counters;
}

static int manager_start(Manager *m) {
        static const HoldsHooks hooks = {
                .requested = hold_requested,
                .changed = holds_changed,
                .granted = holds_granted,
                .add_counters = hold_add_counters,
        };
        Context *context = &m->context;
        int r;

        r = store_new(context->event, &context->store);
        if (r >= 0)
                r = host_state_new(&context->host);
        if (r >= 0)
                r = pmu_table_load(&context->pmus, "/sys");
        if (r >= 0)
                r = capacities_new(context, &context->capacities);
        if (r >= 0)
                r = probing_new(context, &m->probing);
        if (r >= 0)
                r = holds_init(&m->holds, context, &hooks, m);
        if (r >= 0)
                r = counters_init(&m->counters, context, &m->holds);
        if (r >= 0)
                r = samplers_init(&m->samplers, context, &m->counters);
        if (r >= 0)
                r = bridges_new(context, &m->holds, &m->bridges);
        return r;
}

int service_new(Reader *reader, const char *config_path, Service **ret) {
        _cleanup_(service_freep) Service *s = calloc(1, sizeof(Service));
        int r;

        if (!s) {
                reader_free(reader);
                return -ENOMEM;
        }
        service_init(s, reader);
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
        s->manager.context.touched = service_touched;
        s->manager.context.userdata = s;
        *ret = TAKE_PTR(s);
        return 0;
}

/* What an earlier run has left. Holds come first: they say who has to have yielded. */
static int manager_restore(Manager *m) {
        Context *context = &m->context;
        int r;

        r = host_state_bus(context);
        if (r >= 0)
                r = holds_restore(&m->holds);
        if (r >= 0)
                r = counters_restore(&m->counters);
        if (r >= 0)
                r = samplers_restore(&m->samplers);
        if (r >= 0)
                r = monitors_restore(&m->monitors);
        if (r >= 0)
                r = issued_events_restore(&m->events.issued, context->store);
        if (r >= 0)
                r = bridges_restore(m->bridges);
        if (r < 0)
                return r;
        counters_go_on(&m->counters);
        store_commit(context->store);
        counters_reopen(&m->counters);
        return 0;
}

/* ---- the loop ---- */

/* A message that was put into the bus's queue again is handled at once: libsystemd would arm a
 * timer for it and go to sleep. One an iteration, for others are waiting as well. */
static void process_queued(const Context *context) {
        uint64_t n = 0;
        int code;

        if (sd_event_get_exit_code(context->event, &code) == -ENODATA &&
            sd_bus_get_n_queued_read(context->bus, &n) >= 0 && n > 0)
                (void) sd_bus_process(context->bus,
                                      NULL); /* what is wrong with the bus the loop sees */
}

static int service_loop(const Context *context) {
        int r = 0, code;

        while (r >= 0 && sd_event_get_state(context->event) != SD_EVENT_FINISHED) {
                process_queued(context);
                r = sd_event_run(context->event, UINT64_MAX);
        }
        return r < 0 ? r : sd_event_get_exit_code(context->event, &code) < 0 ? 0 : code;
}

int service_run(Service *s) {
        Manager *m = &s->manager;
        Context *context = &m->context;
        int r;

        r = manager_restore(m);
        if (r < 0) {
                log_plain(LOG_ERR, "Cannot go on where the service was: %s", strerror(-r));
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
        (void) sd_notify(false, "READY=1");
        context_touch(context);
        r = service_loop(context);
        (void) sd_bus_flush(context->bus);
        return r;
}

/* ---- end ---- */

static void manager_done(Manager *m) {
        requests_end(m->context.requests);
        m->probing = probing_free(m->probing);
        samplers_done(&m->samplers);
        holds_done(&m->holds);
        monitors_done(&m->monitors);
        m->bridges = bridges_free(m->bridges);
        configured_done(&m->configured);
        counters_done(&m->counters);
        issued_events_done(&m->events.issued);
}

static void context_done(Context *context) {
        redaction_free(context->redaction);
        reader_free(context->reader);
        capacities_free(context->capacities);
        sd_bus_flush_close_unref(context->bus);
        sd_event_unref(context->event);
        yielders_done(&context->yielders);
        ledger_done(&context->ledger);
        pmu_table_done(&context->pmus);
        quota_done(&context->quota);
        host_state_free(context->host);
        store_free(context->store);
        serial_close(&context->serial);
}

Service *service_free(Service *s) {
        Context *context;

        if (!s)
                return NULL;
        context = &s->manager.context;
        context->touched = NULL; /* what goes now touches nothing any more */
        manager_done(&s->manager);
        idle_exit_free(s->idle_exit);
        sd_event_source_disable_unref(s->cpu_watch);
        scheduler_free(s->scheduler);
        context->auth = auth_free(context->auth);
        context_done(context);
        free(s->config_path);
        free(s->monitors_directory);
        free(s);
        return NULL;
}

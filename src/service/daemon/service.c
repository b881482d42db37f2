/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "core/clock.h"
#include "perf/pmu/hotplug.h"
#include "service/auth/redaction.h"
#include "service/bus/bus-lost.h"
#include "service/bus/request.h"
#include "service/counter/attach-job.h"
#include "service/counter/counter-store.h"
#include "service/daemon/idle-exit.h"
#include "service/daemon/manager-bus.h"
#include "service/hold/hold-store.h"
#include "service/hold/hold.h"
#include "service/monitor/bridges.h"
#include "service/monitor/configured-monitor.h"
#include "service/monitor/monitor.h"
#include "service/pmu/capacity.h"
#include "service/pmu/pmu-bus.h"
#include "service/pmu/probe-call.h"
#include "service/sampler/sampler.h"
#include "service/util/log.h"

#define BUS_AWAIT_SEC 60 /* less than systemd's TimeoutStartSec= */

bool redaction_allows(Service *s, uid_t uid) {
        sd_bus_message *m = s->broadcasting ? NULL : sd_bus_get_current_message(s->bus);
        const Peer *peer = m ? peers_sender(s->peers, m) : NULL;

        return peer && (peer->uid == 0 || peer->uid == uid || redaction_manages(s, m));
}

int service_check_owner(Service *s, Peer *peer, sd_bus_message *m, uid_t uid, const char *what,
                        Refusal *why) {
        Refusal denied;
        int r;

        if (peer->uid == 0 || peer->uid == uid)
                return peer->gone ? -ESTALE : 0;
        r = auth_check(s->auth, peer, m, ACTION_MANAGE, NULL, &denied);
        if (r <= 0)
                return r;
        return refuse(why, REFUSAL_NOT_OWNER, "%s belongs to uid %u, and: %.600s", what,
                      (unsigned) uid, denied.text);
}

static void peer_gone(void *userdata, Peer *peer) {
        Service *s = userdata;

        scheduler_forget_peer(s->turns, peer);
        auth_forget_peer(s->auth, peer);
        calls_forget_peer(peer);
        samplers_forget_peer(s, peer);
        counters_forget_peer(s, peer);
        monitors_forget_peer(s, peer);
}

static void reader_died(void *userdata) {
        Service *s = userdata;

        log_event(LOG_ERR, LOG_ID_DEGRADED,
                  "The helper process has died; the service starts anew to get another one.", NULL);
        (void) sd_event_exit(s->event, EXIT_FAILURE);
}

static void yielder_acknowledged(void *userdata) {
        holds_advance(userdata);
}

/* ---- start and end ---- */

static int service_make_cover(Service *s) {
        size_t n_cpus = 0;

        CPU_FOREACH (cpu, &s->pmus.possible)
                n_cpus = (size_t) cpu + 1;
        s->cover = calloc(s->pmus.n_pmus + 1, sizeof(Cover *));
        if (!s->cover)
                return -ENOMEM;
        for (size_t i = 0; i < s->pmus.n_pmus; i++) {
                s->cover[i] = calloc(n_cpus, sizeof(Cover));
                if (!s->cover[i])
                        return -ENOMEM;
        }
        return 0;
}

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

static int service_open_bus(Service *s) {
        int r;

        r = bus_await(&s->bus);
        if (r < 0)
                return r;
        r = sd_bus_attach_event(s->bus, s->event, 0);
        if (r < 0)
                return r;
        r = sd_bus_set_exit_on_disconnect(s->bus, true);
        if (r < 0)
                return r;
        r = bus_lost_init(s->bus);
        if (r < 0)
                return r;
        r = redaction_init(s); /* before the peers: the filter added last runs first */
        if (r >= 0)
                r = idle_exit_init(s);
        if (r >= 0)
                r = scheduler_new(s, &s->turns);
        if (r >= 0)
                r = peers_new(s->bus, peer_gone, s, &s->peers);
        if (r >= 0)
                r = auth_new(s->bus, &s->auth);
        if (r >= 0)
                r = scheduler_guard(s->turns);
        if (r >= 0)
                auth_set_waiting_max(s->auth, (unsigned) s->config.limits[QUOTA_CALLS]);
        if (r >= 0)
                r = manager_bus_register(s);
        if (r >= 0)
                r = hold_bus_register(s);
        if (r >= 0)
                r = counter_bus_register(s);
        if (r >= 0)
                r = monitor_bus_register(s);
        if (r >= 0)
                r = sampler_bus_register(s);
        if (r >= 0)
                r = pmu_bus_register(s);
        return r;
}

static int stop(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Service *s = userdata;

        (void) sd_notify(false, "STOPPING=1");
        return sd_event_exit(s->event, EXIT_SUCCESS);
}

/* Who was away and is back before anybody has looked has gone and come, too. */
static void cpus_follow(Service *s, const CpuSet *before, const CpuGenerations *lives) {
        CPU_FOREACH (cpu, &s->pmus.possible) {
                bool was = cpuset_has(before, (unsigned) cpu);
                bool is = cpuset_has(&s->pmus.online, (unsigned) cpu);
                bool other = cpu_generations_differ(lives, &s->pmus.generations, (unsigned) cpu);

                if (was && (!is || other))
                        counters_cpu_changed(s, (unsigned) cpu, false);
                if (is && (!was || other)) {
                        counters_cpu_changed(s, (unsigned) cpu, true);
                        holds_cpu_joined(s, (unsigned) cpu);
                }
        }
}

/* Some CPU came or went: which ones, the kernel's list says. */
static int cpus_changed(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Service *s = userdata;
        _cleanup_(cpuset_done) CpuSet before = CPUSET_NULL;
        _cleanup_(cpu_generations_done) CpuGenerations lives = CPU_GENERATIONS_NULL;

        if (!hotplug_read(fd) || cpuset_copy(&before, &s->pmus.online) < 0 ||
            cpu_generations_load(s->pmus.generations.ids, s->pmus.generations.n, &lives) < 0 ||
            pmu_table_refresh_online(&s->pmus) < 0)
                return 0;
        cpus_follow(s, &before, &lives);
        host_state_save(s);
        return 0;
}

static int service_watch_cpus(Service *s) {
        int fd = hotplug_open(), r;

        if (fd < 0) {
                log_plain(LOG_WARNING,
                          "CPUs that go offline or come online will not be noticed: %s",
                          strerror(-fd));
                return 0;
        }
        r = sd_event_add_io(s->event, &s->hotplug, fd, EPOLLIN, cpus_changed, s);
        if (r < 0) {
                close_fd(fd);
                return r;
        }
        return sd_event_source_set_io_fd_own(s->hotplug, true);
}

/* Limits hold for what is made from now on. */
static void service_load_config(Service *s) {
        config_default(&s->config);
        config_load(&s->config, s->config_path);
        memcpy(s->quota.limits, s->config.limits, sizeof(s->config.limits));
        if (s->auth)
                auth_set_waiting_max(s->auth, (unsigned) s->config.limits[QUOTA_CALLS]);
}

static int reload(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Service *s = userdata;
        int r;

        (void) sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_usec(CLOCK_MONOTONIC));
        service_load_config(s);
        r = configured_load(s, s->monitors_directory);
        if (r < 0)
                log_plain(LOG_ERR, "Configured monitors could not all be read again: %s",
                          strerror(-r));
        r = bridges_load(s);
        if (r < 0)
                log_plain(LOG_ERR, "Bridges could not all be made anew: %s", strerror(-r));
        log_plain(LOG_INFO, "Configuration read again.");
        (void) sd_notify(false, "READY=1");
        service_touch(s);
        return 0;
}

static int service_make_loop(Service *s) {
        int r;

        r = sd_event_new(&s->event);
        if (r < 0)
                return r;
        r = sd_event_add_signal(s->event, NULL, SIGTERM, stop, s);
        if (r >= 0)
                r = sd_event_add_signal(s->event, NULL, SIGINT, stop, s);
        if (r >= 0)
                r = sd_event_add_signal(s->event, NULL, SIGHUP, reload, s);
        if (r >= 0)
                r = sd_event_set_watchdog(s->event, true);
        if (r >= 0)
                r = idle_exit_make_timer(s);
        if (r >= 0)
                r = reader_attach_event(s->helper, s->event, reader_died, s);
        if (r >= 0)
                r = service_watch_cpus(s);
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

int service_new(Reader *helper, const char *config_path, Service **ret) {
        _cleanup_(service_freep) Service *s = calloc(1, sizeof(Service));
        int r;

        if (!s) {
                reader_free(helper);
                return -ENOMEM;
        }
        s->helper = helper;
        LIST_INIT(&s->calls);
        attach_jobs_init(s);
        issued_events_init(&s->handed);
        quota_init(&s->quota);
        ledger_init(&s->ledger);
        yielders_init(&s->roster, &s->ledger, yielder_acknowledged, s);
        r = serial_open(&s->serial, getenv("RUNTIME_DIRECTORY"));
        if (r < 0)
                log_plain(LOG_WARNING,
                          "No usable runtime directory ($RUNTIME_DIRECTORY): %s. Object "
                          "numbers start from the clock.",
                          strerror(-r));
        r = service_set_paths(s, config_path);
        if (r < 0)
                return r;
        service_load_config(s);
        r = service_make_loop(s);
        if (r >= 0)
                r = store_new(s->event, &s->store);
        if (r >= 0)
                r = counters_init(s);
        if (r >= 0)
                r = probing_new(s, &s->probing);
        if (r >= 0)
                r = samplers_init(s);
        if (r >= 0)
                r = holds_init(s);
        if (r >= 0)
                r = pmu_table_load(&s->pmus, "/sys");
        if (r >= 0)
                r = capacities_init(s);
        if (r >= 0)
                r = service_make_cover(s);
        if (r >= 0)
                r = service_open_bus(s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

/* What an earlier run has left. Holds come first: they say who has to have yielded. */
static int service_restore(Service *s) {
        int r;

        r = host_state_bus(s);
        if (r >= 0)
                r = holds_restore(s);
        if (r >= 0)
                r = counters_restore(s);
        if (r >= 0)
                r = samplers_restore(s);
        if (r >= 0)
                r = monitors_restore(s);
        if (r >= 0)
                r = issued_events_restore(&s->handed, s->store);
        if (r >= 0)
                r = bridges_restore(s);
        if (r < 0)
                return r;
        counters_go_on(s);
        store_commit(s->store);
        counters_reopen(s);
        return 0;
}

/* A message that was put into the bus's queue again is handled at once: libsystemd would arm a
 * timer for it and go to sleep. One a turn, for others are waiting as well. */
static void service_process_queued(Service *s) {
        uint64_t n = 0;
        int code;

        if (sd_event_get_exit_code(s->event, &code) == -ENODATA &&
            sd_bus_get_n_queued_read(s->bus, &n) >= 0 && n > 0)
                (void) sd_bus_process(s->bus, NULL); /* what is wrong with the bus the loop sees */
}

static int service_loop(Service *s) {
        int r = 0, code;

        while (r >= 0 && sd_event_get_state(s->event) != SD_EVENT_FINISHED) {
                service_process_queued(s);
                r = sd_event_run(s->event, UINT64_MAX);
        }
        return r < 0 ? r : sd_event_get_exit_code(s->event, &code) < 0 ? 0 : code;
}

int service_run(Service *s) {
        int r;

        r = service_restore(s);
        if (r < 0) {
                log_plain(LOG_ERR, "Cannot go on where the service was: %s", strerror(-r));
                return r;
        }
        r = sd_bus_request_name(s->bus, PERFALLOC_BUS_NAME, 0);
        if (r < 0) {
                log_plain(LOG_ERR, "Cannot own the bus name %s: %s", PERFALLOC_BUS_NAME,
                          strerror(-r));
                return r;
        }
        r = configured_load(s, s->monitors_directory);
        if (r < 0)
                return r;
        holds_go_on(s);
        host_state_cpus(s);
        (void) sd_notify(false, "READY=1");
        service_touch(s);
        r = service_loop(s);
        (void) sd_bus_flush(s->bus);
        return r;
}

Service *service_free(Service *s) {
        if (!s)
                return NULL;
        s->idle =
                sd_event_source_disable_unref(s->idle); /* what goes now touches nothing any more */
        calls_done(s);
        probing_free(s->probing);
        samplers_done(s);
        holds_done(s);
        monitors_done(s);
        bridges_done(s);
        configured_done(s);
        counters_done(s);
        scheduler_free(s->turns);
        auth_free(s->auth);
        peers_free(s->peers);
        reader_free(s->helper);
        sd_bus_flush_close_unref(s->bus);
        sd_event_source_disable_unref(s->forget);
        sd_event_source_disable_unref(s->announce);
        sd_event_source_disable_unref(s->retry);
        sd_event_source_disable_unref(s->hotplug);
        sd_event_source_disable_unref(s->measure);
        sd_event_unref(s->event);
        yielders_done(&s->roster);
        ledger_done(&s->ledger);
        for (size_t i = 0; s->cover && i < s->pmus.n_pmus; i++)
                free(s->cover[i]);
        free(s->cover);
        pmu_table_done(&s->pmus);
        quota_done(&s->quota);
        issued_events_done(&s->handed);
        host_state_done(s);
        store_free(s->store);
        serial_close(&s->serial);
        free(s->config_path);
        free(s->monitors_directory);
        free(s);
        return NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "service/auth/auth.h"
#include "service/bus/delivery.h"
#include "service/hold/hold-scope.h"
#include "service/monitor/monitor-store.h"
#include "service/util/lease.h"
#include "service/util/options.h"
#include "service/util/property.h"
#include "service/util/reply.h"

static const char *const state_names[] = {
        [YIELDER_COUNTING] = "counting",
        [YIELDER_ASKED] = "asked",
        [YIELDER_YIELDED] = "yielded",
};

const char *monitor_state(const Monitor *monitor) {
        return state_names[monitor->yielder.state];
}

/* ---- what is told ---- */

static void monitor_signal_state(Monitor *monitor, YielderState state) {
        if (state == monitor->told)
                return;
        monitor->told = state;
        properties_changed(monitor->context->bus, monitor->object.path, PERFALLOC_MONITOR_INTERFACE,
                           1, "State", "s", state_names[state]);
}

/* Creates a signal from the monitor's object to its client only: libsystemd 252 has no call for
 * that. */
static int monitor_signal(const Monitor *monitor, const char *member, sd_bus_message **ret) {
        int r = sd_bus_message_new_signal(monitor->context->bus, ret, monitor->object.path,
                                          PERFALLOC_MONITOR_INTERFACE, member);

        return r < 0 ? r : sd_bus_message_set_destination(*ret, monitor->peer->name);
}

/* The hold that it was asked to yield to; NULL: that is over. */
static const Hold *monitor_hold(const Monitor *monitor) {
        const Hold *h = hold_find(monitor->monitors->holds, monitor->asked_for);

        return h && h->ledger.state == LEDGER_ACTIVE ? h : NULL;
}

static bool monitor_overlaps(const Monitor *monitor, const LedgerHold *l) {
        return l->state == LEDGER_ACTIVE && scope_overlaps(&l->scope, &monitor->what.scope);
}

/* The oldest one that is in its way. */
static const Hold *monitor_oldest_hold(const Monitor *monitor) {
        LedgerHold *l;

        TAILQ_FOREACH (l, &monitor->context->ledger.holds, list)
                if (monitor_overlaps(monitor, l))
                        return hold_of_ledger(l);
        return NULL;
}

void monitor_ask(Monitor *monitor, uint64_t hold, uint64_t deadline_usec) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const Hold *h = hold_find(monitor->monitors->holds, hold);
        char path[64];

        /* of several holds that begin at once only the first is named */
        if (!h || !monitor_overlaps(monitor, &h->ledger)) {
                h = monitor_hold(monitor) ?: monitor_oldest_hold(monitor);
                hold = h ? h->object.id : 0;
                deadline_usec = h && h->state == HOLD_YIELDING
                                        ? h->yield_until_usec
                                        : now_usec(CLOCK_MONOTONIC) + HOLD_YIELD_USEC;
        }
        monitor->asked_for = hold;
        monitor_save(monitor, YIELDER_ASKED);
        (void) snprintf(path, sizeof(path), PERFALLOC_OBJECT_PATH "/hold/%" PRIu64, hold);
        /* a monitor that cannot be asked does not answer, and becomes an obstacle */
        if (monitor_signal(monitor, "Yield", &m) >= 0 &&
            sd_bus_message_append(m, "ot", path, deadline_usec) >= 0)
                (void) sd_bus_send(NULL, m, NULL);
        monitor_signal_state(monitor, YIELDER_ASKED);
}

static int monitor_yield(Yielder *y, uint64_t hold, uint64_t deadline_usec) {
        monitor_ask(container_of(y, Monitor, yielder), hold, deadline_usec);
        return 1;
}

static bool monitor_is_over(const Yielder *y) {
        return !monitor_hold(container_of(y, Monitor, yielder));
}

static void monitor_resume(Yielder *y) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        Monitor *monitor = container_of(y, Monitor, yielder);

        if (monitor_signal(monitor, "Resume", &m) >= 0)
                (void) sd_bus_send(NULL, m, NULL);
        monitor_signal_state(monitor, YIELDER_COUNTING);
        /* last: if the service is killed in between, Resume is sent twice, which is harmless, and
         * not never */
        monitor_save(monitor, YIELDER_COUNTING);
}

static void monitor_describe(const Yielder *y, pid_t *ret_pid, char *buffer, size_t size) {
        const Monitor *monitor = container_of(y, Monitor, yielder);

        *ret_pid = monitor->peer->pid;
        (void) snprintf(buffer, size, "monitor %" PRIu64 " of uid %u, which was asked to yield",
                        monitor->object.id, (unsigned) monitor->object.uid);
}

static const YielderOps monitor_ops = {
        .yield = monitor_yield,
        .is_over = monitor_is_over,
        .resume = monitor_resume,
        .describe = monitor_describe,
};

static bool monitor_awaits(const Monitor *monitor, uint64_t hold) {
        return monitor->yielder.state == YIELDER_ASKED && hold == monitor->asked_for &&
               monitor_hold(monitor);
}

void monitor_note_yielded(Monitor *monitor, uint64_t hold) {
        if (monitor_awaits(monitor, hold))
                monitor_save(monitor, YIELDER_YIELDED);
}

void monitor_yielded(Monitor *monitor, uint64_t hold) {
        if (!monitor_awaits(monitor, hold))
                return;
        monitor_signal_state(monitor, YIELDER_YIELDED); /* before the grant that follows */
        yielder_acknowledge(&monitor->yielder);
}

/* ---- its life ---- */

Monitor *monitor_allocate(Monitors *monitors, uid_t uid, Peer *peer) {
        Monitor *monitor = calloc(1, sizeof(Monitor));

        if (!monitor)
                return NULL;
        *monitor = (Monitor){ .object.uid = uid,
                              .yielder.ops = &monitor_ops,
                              .monitors = monitors,
                              .context = monitors->context,
                              .peer = peer ? peer_ref(peer) : NULL,
                              .lease = -1 };
        return monitor;
}

Monitor *monitor_free(Monitor *monitor) {
        if (!monitor)
                return NULL;
        sd_event_source_disable_unref(monitor->again);
        sd_event_source_disable_unref(monitor->lease_source);
        close_fd(monitor->lease);
        scope_request_done(&monitor->what);
        quota_release(&monitor->charge);
        if (monitor->peer)
                peer_unref(monitor->peer);
        object_leave(&monitor->object, &monitor->monitors->objects);
        free(monitor->name);
        free(monitor);
        return NULL;
}

/* The monitor and what it counted are gone: those who wait for it go on. */
/* In a hold of a number of counters, others may go on in the place of one, or have to make room. */
static void monitors_apply(Monitors *monitors) {
        (void) yielders_apply(&monitors->context->yielders, holds_current(monitors->holds),
                              now_usec(CLOCK_MONOTONIC) + HOLD_YIELD_USEC, NULL);
}

static void monitor_end(Monitor *monitor) {
        Monitors *monitors = monitor->monitors;

        store_leave(&monitor->item);
        object_signal_removed(&monitor->object, &monitors->objects, monitors->context->bus);
        yielders_dismiss(&monitors->context->yielders, &monitor->yielder);
        object_leave(&monitor->object, &monitors->objects);
        monitors_apply(monitors);
        monitor_free(monitor);
        context_touch(monitors->context);
}

static int monitor_lease_closed(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        monitor_end(userdata);
        return 0;
}

int monitor_watch_lease(Monitor *monitor, int lease) {
        int r = lease_watch(monitor->context->event, lease, &monitor->lease_source,
                            monitor_lease_closed, monitor);

        if (r >= 0)
                monitor->lease = lease;
        return r;
}

int monitor_enter(Monitor *monitor, uint64_t id) {
        int r = object_enter(&monitor->object, &monitor->monitors->objects, id);

        return r < 0 ? r : yielders_enroll(&monitor->context->yielders, &monitor->yielder);
}

typedef struct MonitorOptions {
        char **pmus;
        const char *cpus;
        uint32_t priority;
} MonitorOptions;

static const OptionSpec option_specs[] = {
        { "pmus", "as", offsetof(MonitorOptions, pmus) },
        { "cpus", "s", offsetof(MonitorOptions, cpus) },
        { "priority", "u", offsetof(MonitorOptions, priority) },
};

static int monitor_read(Monitor *monitor, sd_bus_message *m, Refusal *why) {
        _cleanup_(strings_freep) char **pmus = NULL;
        MonitorOptions o = {};
        const char *name;
        uint64_t seen;
        int r;

        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = sd_bus_message_read_basic(m, 's', &name);
        if (r < 0)
                return r;
        r = words_check("the name", name, MONITOR_NAME_MAX, why);
        if (r == 0)
                r = options_read(m, option_specs, ELEMENTSOF(option_specs), &o, &seen, why);
        pmus = o.pmus;
        if (r == 0)
                r = scope_request_read(&monitor->context->pmus, o.pmus, o.cpus, &monitor->what,
                                       why);
        if (r != 0)
                return r;
        monitor->yielder.plan = (PlanMonitor){ .scope = &monitor->what.scope,
                                               .priority = o.priority,
                                               .use.takes.general = 1 };
        monitor->name = strdup(name);
        return monitor->name ? 0 : -ENOMEM;
}

static int monitor_build(Monitor *monitor, int *ret_lease, Refusal *why) {
        Monitors *monitors = monitor->monitors;
        int r;

        r = quota_charge(&monitors->context->quota, monitor->object.uid, QUOTA_MONITORS, 1,
                         &monitor->charge, why);
        if (r != 0)
                return r;
        r = lease_new(monitors->context->event, &monitor->lease, &monitor->lease_source,
                      monitor_lease_closed, monitor, ret_lease);
        if (r < 0)
                return r;
        r = monitor_enter(monitor, serial_next(&monitors->context->serial, SERIAL_MONITOR));
        if (r < 0)
                return r;
        /* it counts, and is asked if it has to yield */
        monitor_keep(monitor, YIELDER_COUNTING);
        return 0;
}

static int monitor_new(Monitors *monitors, Peer *peer, sd_bus_message *m, Monitor **ret,
                       int *ret_lease, Refusal *why) {
        _cleanup_(monitor_freep) Monitor *monitor = monitor_allocate(monitors, peer->uid, peer);
        Asked asked = ASKED_NULL;
        int r;

        if (!monitor)
                return -ENOMEM;
        r = monitor_read(monitor, m, why);
        if (r == 0)
                r = quota_check(&monitors->context->quota, peer->uid, QUOTA_MONITORS, 1, why);
        if (r != 0)
                return r;
        asked.reason = monitor->name;
        scope_request_ask(&monitor->what, &asked);
        r = auth_check(monitors->context->auth, peer, m, ACTION_MONITOR, &asked, why);
        if (r == 0)
                r = delivery_admit(monitors->context, peer, m, 1, why);
        if (r == 0)
                r = monitor_build(monitor, ret_lease, why);
        if (r != 0)
                return r;
        *ret = TAKE_PTR(monitor);
        return 0;
}

int monitor_handle_register(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_close_ int lease = -1;
        Monitors *monitors = userdata;
        Refusal why = REFUSAL_NULL;
        Monitor *monitor;
        int r;

        r = monitor_new(monitors, peers_sender(monitors->context->peers, m), m, &monitor, &lease,
                        &why);
        if (r != 0)
                return reply_failure(r, &why, error);
        context_touch(monitors->context);
        monitor->told = monitor->yielder.state;
        object_signal_added(&monitor->object, &monitors->objects, monitors->context->bus);
        r = sd_bus_reply_method_return(m, "oh", monitor->object.path, lease);
        if (r < 0) {
                monitor_end(monitor);
                return reply_failure(r, NULL, error);
        }
        /* It counts although its counters are held. No grant waits for it, so it is asked now. */
        if (monitor->yielder.state == YIELDER_YIELDED) {
                yielder_set_state(&monitor->yielder, YIELDER_ASKED);
                monitor_ask(monitor, 0, 0);
        }
        monitors_apply(monitors);
        return 1;
}

/* ---- all of them ---- */

typedef struct MonitorSearch {
        const Peer *peer; /* NULL: any */
        Monitor *found;
} MonitorSearch;

static void monitor_match(void *userdata, Object *o) {
        Monitor *monitor = monitor_of_object(o);
        MonitorSearch *search = userdata;

        if (!search->peer || monitor->peer == search->peer)
                search->found = monitor;
}

void monitors_forget_peer(Monitors *monitors, Peer *peer) {
        while (monitors->objects.n > 0) {
                MonitorSearch search = { .peer = peer };

                objects_walk(&monitors->objects, monitor_match, &search);
                if (!search.found)
                        return;
                monitor_end(search.found);
        }
}

void monitors_done(Monitors *monitors) {
        while (monitors->objects.n > 0) {
                MonitorSearch search = {};

                objects_walk(&monitors->objects, monitor_match, &search);
                /* nobody waits for it any more */
                yielder_set_state(&search.found->yielder, YIELDER_COUNTING);
                yielders_dismiss(&monitors->context->yielders, &search.found->yielder);
                monitor_free(search.found);
        }
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-signals.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "perf/process/procfs.h"
#include "service/hold/hold-obstacles.h"
#include "service/util/log.h"
#include "service/util/property.h"
#include "service/util/rate-limit.h"
#include "service/util/reply.h"

#define NAMED_MAX 4u /* so many are named, the others are counted */

/* Journal entries of one user: so many at once, and then one in an interval, so that nobody pushes
 * out the others'. */
#define LOG_BURST         64u
#define LOG_INTERVAL_USEC (2 * USEC_PER_SEC)

/* Signals are best effort: when they cannot be sent the connection is lost, which the loop
 * notices. */

void hold_signal_added(Hold *h) {
        object_signal_added(&h->object, &h->holds->objects, h->context->bus);
}

void hold_signal_removed(Hold *h) {
        object_signal_removed(&h->object, &h->holds->objects, h->context->bus);
}

#define hold_changed(h, n, ...)                                                                    \
        properties_changed((h)->context->bus, (h)->object.path, PERFALLOC_HOLD_INTERFACE, n,       \
                           __VA_ARGS__)

void hold_signal_state(const Hold *h) {
        const char *state = hold_state_name(h->state);

        if (h->state == HOLD_ENDED)
                hold_changed(h, 2, "State", "s", state, "Result", "s", hold_result_name(h->result));
        else
                hold_changed(h, 1, "State", "s", state);
}

void hold_signal_granted(const Hold *h) {
        hold_changed(h, 3, "State", "s", hold_state_name(h->state), "Confirmed", "b",
                     (int) h->confirmed, "GrantTimestamp", "t", h->granted_usec);
        (void) sd_bus_emit_signal(h->context->bus, PERFALLOC_OBJECT_PATH,
                                  PERFALLOC_MANAGER_INTERFACE, "HoldGranted", "obt", h->object.path,
                                  (int) h->confirmed, h->latency_usec);
}

void hold_signal_confirmed(const Hold *h) {
        hold_changed(h, 1, "Confirmed", "b", (int) h->confirmed);
}

void hold_signal_ended(const Hold *h) {
        (void) sd_bus_emit_signal(h->context->bus, PERFALLOC_OBJECT_PATH,
                                  PERFALLOC_MANAGER_INTERFACE, "HoldEnded", "os", h->object.path,
                                  hold_result_name(h->result));
}

void hold_signal_expiry(const Hold *h) {
        hold_changed(h, 1, "ExpireTimestamp", "t", h->expires_usec);
}

/* libsystemd 252 has no call for a signal to one client. */
void hold_signal_expiring(const Hold *h) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        if (h->client &&
            sd_bus_message_new_signal(h->context->bus, &m, h->object.path, PERFALLOC_HOLD_INTERFACE,
                                      "Expiring") >= 0 &&
            sd_bus_message_set_destination(m, h->client) >= 0 &&
            sd_bus_message_append(m, "t", h->expires_usec) >= 0)
                (void) sd_bus_send(NULL, m, NULL);
}

void hold_signal_yielding(Holds *holds) {
        properties_changed(holds->context->bus, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                           1, "Yielding", "b", (int) !TAILQ_EMPTY(&holds->granted));
}

typedef struct Names {
        const char *title; /* before the first one; without any there is no text */
        bool hidden;       /* no processes */
        char text[512];
        unsigned n;
} Names;

static void names_add(Names *names, const char *name) {
        size_t used = strlen(names->text);

        if (names->n++ < NAMED_MAX)
                (void) snprintf(names->text + used, sizeof(names->text) - used, "%s%s",
                                used > 0 ? "; " : names->title, name);
}

static const char *names_end(Names *names) {
        size_t used = strlen(names->text);

        if (names->n > NAMED_MAX)
                (void) snprintf(names->text + used, sizeof(names->text) - used, "; and %u more",
                                names->n - NAMED_MAX);
        return names->text;
}

static int names_add_obstacle(void *userdata, pid_t pid, const char *who) {
        const Names *names = userdata;
        char name[320];

        if (names->hidden && pid > 0) {
                names_add(userdata, HOLD_OBSTACLE_HIDDEN);
                return 0;
        }
        (void) snprintf(name, sizeof(name), "%s (pid %d)", who, (int) pid);
        names_add(userdata, pid > 0 ? name : who);
        return 0;
}

static bool hold_is_offline(const Hold *h) {
        const Scope *scope = &h->request.what.scope;

        for (size_t i = 0; i < scope->n_parts; i++)
                if (cpuset_intersects(&scope->parts[i].cpus, &h->context->pmus.online))
                        return false;
        return scope->n_parts > 0;
}

/* Why nobody can tell what is free. False: the hold was obstructed for another reason. */
static bool hold_say_unmeasurable(const Hold *h, char *text, size_t size) {
        const Scope *scope = &h->request.what.scope;

        if (h->n_obstacles > 0)
                return false;
        for (size_t i = 0; i < scope->n_parts; i++) {
                const Pmu *pmu = &h->context->pmus.pmus[scope->parts[i].pmu];

                if (!pmu->measured) {
                        (void) snprintf(text, size,
                                        "the counters of PMU %s (%s) cannot be measured, so the "
                                        "hold cannot be confirmed",
                                        pmu->name, pmu_kind_name(pmu->kind));
                        return true;
                }
        }
        if (hold_is_offline(h)) {
                (void) snprintf(text, size,
                                "all CPUs of the hold (%s) are offline, so it cannot be confirmed",
                                h->request.what.cpus);
                return true;
        }
        return false;
}

/* For the hold's own user. */
static Names names_for_user(const Hold *h, const char *title) {
        return (Names){ .title = title, .hidden = h->object.uid != 0 && procfs_hides() };
}

static int hold_refuse_ended(const Hold *h, Refusal *why) {
        Names names = names_for_user(h, h->result == HOLD_TIMED_OUT ? "; still held by: "
                                                                    : "; in use by: ");
        char unmeasurable[256];

        switch (h->result) {
        case HOLD_TIMED_OUT:
                (void) hold_obstacles(h, names_add_obstacle, &names);
                return refuse(why, REFUSAL_TIMED_OUT,
                              "timed out after %" PRIu64 " ms in the queue (option 'wait_usec')%s",
                              h->request.wait_usec / USEC_PER_MSEC, names_end(&names));
        case HOLD_OBSTRUCTED:
                if (hold_say_unmeasurable(h, unmeasurable, sizeof(unmeasurable)))
                        return refuse(why, REFUSAL_OBSTRUCTED,
                                      "%s; option 'best_effort' grants it unconfirmed",
                                      unmeasurable);
                (void) hold_obstacles(h, names_add_obstacle, &names);
                return refuse(why, REFUSAL_OBSTRUCTED,
                              "not all counters became free%s; option 'best_effort' grants the "
                              "hold all the same",
                              names_end(&names));
        default:
                return refuse(why, REFUSAL_ENDED, "the hold has ended (%s)",
                              hold_result_name(h->result));
        }
}

void hold_signal_waiter(const Hold *h, sd_bus_message *m) {
        Refusal why;
        int r;

        if (h->state == HOLD_GRANTED)
                r = MIN(sd_bus_reply_method_return(m, "bt", (int) h->confirmed, h->latency_usec),
                        0);
        else
                r = hold_refuse_ended(h, &why);
        if (r != 0)
                reply_failure_later(m, r, &why);
}

int hold_refuse_busy(const Hold *h, Refusal *why) {
        Names names = names_for_user(h, ": ");

        (void) hold_obstacles(h, names_add_obstacle, &names);
        return refuse(why, REFUSAL_BUSY,
                      "the counters are held%s; option 'wait_usec' waits for them",
                      names_end(&names));
}

/* What each CPU of the PMU has for holds. */
static uint64_t hold_capacity(const Hold *h, const Pmu *pmu) {
        return h->context->ledger.slots.pmus[pmu->index].capacity;
}

/* That of the fewest; what nobody knows is no reason. */
static const Pmu *hold_scarcest(const Hold *h) {
        const Scope *scope = &h->request.what.scope;
        const Pmu *scarcest = NULL;
        uint64_t least = SLOT_UNLIMITED;

        for (size_t i = 0; i < scope->n_parts; i++) {
                const Pmu *pmu = &h->context->pmus.pmus[scope->parts[i].pmu];
                uint64_t n = hold_capacity(h, pmu);

                if (!scarcest || (n != SLOT_UNKNOWN && n < least)) {
                        scarcest = pmu;
                        least = n == SLOT_UNKNOWN ? SLOT_UNLIMITED : n;
                }
        }
        return scarcest;
}

int hold_refuse_number(const Hold *h, Refusal *why) {
        const Pmu *pmu = hold_scarcest(h);
        uint64_t n;

        n = hold_capacity(h, pmu);
        return refuse(why, REFUSAL_INVALID_ARGS,
                      "option 'counters': %u is more than the %u general counters of each CPU of "
                      "PMU %s%s",
                      h->request.counters, (unsigned) n, pmu->name,
                      n < pmu->counters ? " that the kernel's NMI watchdog (kernel.nmi_watchdog) "
                                          "leaves; NmiWatchdog=yes in perfallocd.conf(5) makes its "
                                          "counter available"
                                        : "");
}

/* By uid; µs of quiet. */
static RateLimit entries = { .per_sec = USEC_PER_SEC };
static unsigned n_left_out; /* since the last entry */

static bool hold_log_may(const Hold *h) {
        if (!rate_limit_take(&entries, h->object.uid, now_usec(CLOCK_MONOTONIC), LOG_INTERVAL_USEC,
                             LOG_BURST * LOG_INTERVAL_USEC)) {
                n_left_out++;
                return false;
        }
        if (n_left_out > 0)
                log_plain(LOG_NOTICE,
                          "%u entries about holds were left out: of one user there are %u at once, "
                          "then one in %llu s.",
                          n_left_out, LOG_BURST,
                          (unsigned long long) (LOG_INTERVAL_USEC / USEC_PER_SEC));
        n_left_out = 0;
        return true;
}

static void hold_log(const Hold *h, int priority, const char *message_id, const char *text) {
        char id[24], uid[16], pid[16], latency[24];
        const char *fields[] = {
                "PERFALLOC_TAG",
                h->request.tag ?: "",
                "PERFALLOC_HOLD",
                id,
                "PERFALLOC_UID",
                uid,
                "PERFALLOC_PID",
                pid,
                "PERFALLOC_REASON",
                h->request.reason,
                "PERFALLOC_CPUS",
                h->request.what.cpus,
                "PERFALLOC_CONFIRMED",
                h->confirmed ? "yes" : "no",
                "PERFALLOC_LATENCY_USEC",
                latency,
                "PERFALLOC_RESULT",
                hold_result_name(h->result),
                NULL,
        };

        (void) snprintf(id, sizeof(id), "%" PRIu64, h->object.id);
        (void) snprintf(uid, sizeof(uid), "%u", (unsigned) h->object.uid);
        (void) snprintf(pid, sizeof(pid), "%d", (int) h->pid);
        (void) snprintf(latency, sizeof(latency), "%" PRIu64, h->latency_usec);
        log_event(priority, message_id, text, fields);
}

void hold_log_granted(const Hold *h) {
        const char *itself = h->alone ? " (not every CPU could be probed from another one)" : "";
        char text[256];

        if (!hold_log_may(h))
                return;
        (void) snprintf(text, sizeof(text),
                        "Hold %" PRIu64 " of uid %u (pid %d) granted after %" PRIu64 " us, %s%s.",
                        h->object.id, (unsigned) h->object.uid, (int) h->pid, h->latency_usec,
                        h->confirmed ? "confirmed" : "not confirmed", itself);
        hold_log(h, LOG_INFO, LOG_ID_HOLD_GRANTED, text);
}

/* Why it was obstructed, behind that word. */
static void hold_say_obstructed(const Hold *h, char *text, size_t size) {
        Names names = { .title = "; counters in use by: " };
        char lack[256] = "";

        if (hold_say_unmeasurable(h, lack, sizeof(lack))) {
                (void) snprintf(text, size, ": %s", lack);
                return;
        }
        if (h->lack.pmu)
                (void) snprintf(lack, sizeof(lack), ": %u of %u counters of %s free on CPU %u",
                                h->lack.n_free, h->lack.n_wanted, h->lack.pmu->name, h->lack.cpu);
        (void) hold_obstacles(h, names_add_obstacle, &names);
        (void) snprintf(text, size, "%s%s", lack, names_end(&names));
}

void hold_log_ended(const Hold *h) {
        bool obstructed = h->result == HOLD_OBSTRUCTED;
        char text[1024], why[768] = "";

        if (!hold_log_may(h))
                return;
        if (obstructed)
                hold_say_obstructed(h, why, sizeof(why));
        (void) snprintf(text, sizeof(text), "Hold %" PRIu64 " of uid %u (pid %d) %s%s%s.",
                        h->object.id, (unsigned) h->object.uid, (int) h->pid,
                        obstructed ? "" : "ended: ", hold_result_name(h->result), why);
        hold_log(h, obstructed ? LOG_NOTICE : LOG_INFO,
                 obstructed ? LOG_ID_HOLD_OBSTRUCTED : LOG_ID_HOLD_ENDED, text);
}

void hold_signal_degraded(const char *what) {
        log_event(LOG_ERR, LOG_ID_DEGRADED, what, NULL);
}

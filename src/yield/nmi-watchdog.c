/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "nmi-watchdog.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#define SYSTEMD                                                                                    \
        "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"

/* What systemd was asked for, until it is done. */
typedef struct Job {
        sd_bus_slot *call; /* without a reply yet */
        char *path;
} Job;

typedef struct NmiWatchdog {
        Bridge bridge;
        sd_bus *bus;
        char *path;
        sd_bus_slot *removals; /* JobRemoved */
        Job start, stop;
} NmiWatchdog;

static NmiWatchdog *watchdog_of(const Bridge *b) {
        return container_of(b, NmiWatchdog, bridge);
}

/* It may run: the value is not 0. */
static bool watchdog_runs(const NmiWatchdog *w) {
        _cleanup_close_ int fd = open(w->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        char value = '0';

        return fd >= 0 && read(fd, &value, 1) == 1 && value != '0';
}

static void watchdog_complain(NmiWatchdog *w, const char *what) {
        char text[768];

        (void) snprintf(text, sizeof(text),
                        "Bridge nmi-watchdog: " NMI_WATCHDOG_UNIT ": %.512s. The "
                        "watchdog keeps a counter of every CPU.",
                        what);
        bridge_say(&w->bridge, LOG_WARNING, text);
}

/* ---- jobs ---- */

static void job_forget(Job *j) {
        j->call = sd_bus_slot_unref(j->call);
        free(j->path);
        j->path = NULL;
}

static bool job_is_under_way(const Job *j) {
        return j->call || j->path;
}

static bool job_is(const Job *j, const char *path) {
        return j->path && strcmp(j->path, path) == 0;
}

/* The reply to the call that makes it. */
static void job_made(Job *j, sd_bus_message *m) {
        const char *path;

        j->call = sd_bus_slot_unref(j->call);
        if (sd_bus_message_read_basic(m, 'o', &path) >= 0)
                j->path = strdup(path);
}

/* The unit has run. The sysctl tells whether it worked, not systemd's result, which is the
 * target's: "dependency" when the unit has failed. */
static int watchdog_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        NmiWatchdog *w = userdata;
        const char *job, *unit, *result;
        uint32_t id;

        if (sd_bus_message_read(m, "uoss", &id, &job, &unit, &result) < 0)
                return 0;
        if (job_is(&w->stop, job))
                job_forget(&w->stop);
        if (!job_is(&w->start, job))
                return 0;
        job_forget(&w->start);
        if (watchdog_runs(w)) {
                watchdog_complain(w, strcmp(result, "dependency") == 0 ? "failed" : result);
        } else {
                bridge_say(&w->bridge, LOG_INFO, NULL);
                bridge_answered(&w->bridge);
        }
        return 0;
}

static int watchdog_starting(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        NmiWatchdog *w = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(m);

        job_made(&w->start, m);
        if (e)
                watchdog_complain(w, e->message ?: e->name);
        return 0;
}

static int watchdog_stopping(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        NmiWatchdog *w = userdata;

        job_made(&w->stop, m);
        return 0;
}

static int watchdog_call(NmiWatchdog *w, const char *method, const char *unit,
                         sd_bus_message_handler_t answered, Job *job) {
        job_forget(job);
        return sd_bus_call_method_async(w->bus, &job->call, SYSTEMD, method, answered, w, "ss",
                                        unit, "replace");
}

/* ---- the bridge ---- */

static BridgeAnswer watchdog_take(Bridge *b, uid_t uid) {
        NmiWatchdog *w = watchdog_of(b);
        int r;

        /* where it is being turned on again, it is off only as yet */
        if (!watchdog_runs(w) && !job_is_under_way(&w->stop))
                return BRIDGE_ABSENT;
        r = watchdog_call(w, "StartUnit", NMI_WATCHDOG_TARGET, watchdog_starting, &w->start);
        if (r < 0) {
                watchdog_complain(w, strerror(-r));
                return BRIDGE_RETRY;
        }
        return BRIDGE_ASKED;
}

/* systemd processes jobs in their order, so this also undoes a start under way. */
static void watchdog_release(Bridge *b) {
        NmiWatchdog *w = watchdog_of(b);

        job_forget(&w->start);
        (void) watchdog_call(w, "StopUnit", NMI_WATCHDOG_UNIT, watchdog_stopping, &w->stop);
}

/* The unit may have been stopped meanwhile, or not have run yet; it keeps the old value itself. */
static BridgeAnswer watchdog_restore(Bridge *b, BridgePast *past, bool wanted) {
        if (!wanted || !watchdog_runs(watchdog_of(b)))
                return BRIDGE_TAKEN;
        return watchdog_take(b, 0) == BRIDGE_ASKED ? BRIDGE_ASKED : BRIDGE_ABSENT;
}

static bool watchdog_is_active(const Bridge *b) {
        return access(watchdog_of(b)->path, F_OK) == 0;
}

static void watchdog_describe(const Bridge *b, pid_t *ret_pid, char *buffer, size_t size) {
        *ret_pid = 0;
        (void) snprintf(buffer, size,
                        "the kernel's NMI watchdog, which " NMI_WATCHDOG_UNIT " was to turn off");
}

static void watchdog_free(Bridge *b) {
        NmiWatchdog *w = watchdog_of(b);

        job_forget(&w->start);
        job_forget(&w->stop);
        sd_bus_slot_unref(w->removals);
        free(w->path);
        free(w);
}

static const BridgeOps watchdog_ops = {
        .name = "nmi-watchdog",
        .take = watchdog_take,
        .release = watchdog_release,
        .restore = watchdog_restore,
        .is_active = watchdog_is_active,
        .describe = watchdog_describe,
        .free = watchdog_free,
};

int nmi_watchdog_new(const BridgeHost *host, sd_bus *bus, const char *path, Bridge **ret) {
        NmiWatchdog *w = calloc(1, sizeof(NmiWatchdog));
        int r = -ENOMEM;

        if (!w)
                return -ENOMEM;
        w->bus = bus;
        w->path = strdup(path);
        if (w->path)
                r = sd_bus_match_signal_async(bus, &w->removals, SYSTEMD, "JobRemoved",
                                              watchdog_job_removed, NULL, w);
        if (r >= 0)
                r = bridge_init(&w->bridge, &watchdog_ops, host, 0);
        if (r < 0) {
                watchdog_free(&w->bridge);
                return r;
        }
        *ret = &w->bridge;
        return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "node-hold.h"

#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/clock.h"
#include "slurm/step-cgroup.h"

#define LOST_MAX   5                   /* calls that end with the service */
#define GRANT_USEC (30 * USEC_PER_SEC) /* longer than monitors may take */
#define END_USEC   (5 * USEC_PER_SEC)  /* how long a hanging service may delay the step's end */

#define WAIT_OPTION "option 'wait_usec'" /* the user has another name for it */

static int node_hold_say(NodeHold *h, const char *words) {
        const char *option = strstr(words, WAIT_OPTION);
        int n = (int) (option ? option - words : 0);

        if (option)
                (void) snprintf(h->words, sizeof(h->words), "%.*swait=TIME%s", n, words,
                                option + strlen(WAIT_OPTION));
        else
                (void) snprintf(h->words, sizeof(h->words), "%s", words);
        return NODE_HOLD_E_FAILED;
}

static bool service_was_lost(const sd_bus_error *error) {
        return sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN);
}

/* ---- the call ---- */

static int append_pmus(sd_bus_message *m, char *const *pmus) {
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append(m, "s", "pmus");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "as");
        if (r >= 0)
                r = sd_bus_message_append_strv(m, (char **) pmus);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_options(sd_bus_message *m, const SlurmOption *o) {
        int r = 0;

        if (o->pmus[0])
                r = append_pmus(m, o->pmus);
        if (r >= 0 && o->counters > 0)
                r = sd_bus_message_append(m, "{sv}", "counters", "u", o->counters);
        if (r >= 0 && o->exclusive)
                r = sd_bus_message_append(m, "{sv}", "mode", "s", "exclusive");
        if (r >= 0 && o->best_effort)
                r = sd_bus_message_append(m, "{sv}", "best_effort", "b", 1);
        if (r >= 0 && o->wait_usec > 0)
                r = sd_bus_message_append(m, "{sv}", "wait_usec", "t", o->wait_usec);
        return r;
}

static int append_tie(sd_bus_message *m) {
        _cleanup_close_ int cgroup = step_cgroup_open(), self = -1;

        if (cgroup >= 0)
                return sd_bus_message_append(m, "{sv}", "cgroup", "h", cgroup);
        self = (int) syscall(SYS_pidfd_open, getpid(), 0);
        return self < 0 ? -errno : sd_bus_message_append(m, "{sv}", "pidfd", "h", self);
}

static int message_new(NodeHold *h, const SlurmOption *o, uid_t uid, const char *tag,
                       const char *reason, sd_bus_message **ret) {
        sd_bus_message *m;
        int r = sd_bus_message_new_method_call(h->bus, ret, PERFALLOC_BUS_NAME,
                                               PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                                               "HoldUnattended");

        if (r < 0)
                return r;
        m = *ret;
        r = sd_bus_message_append(m, "st", reason, UINT64_C(0));
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}{sv}", "uid", "u", (uint32_t) uid, "tag", "s",
                                          tag);
        if (r >= 0)
                r = append_tie(m);
        if (r >= 0)
                r = append_options(m, o);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int ask_once(NodeHold *h, const SlurmOption *o, uid_t uid, const char *tag,
                    const char *reason, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        const char *path;
        int r = message_new(h, o, uid, tag, reason, &m);

        if (r >= 0)
                r = sd_bus_call(h->bus, m, GRANT_USEC, error, &reply);
        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return r;
        free(h->path);
        h->path = strdup(path);
        return h->path ? 0 : -ENOMEM;
}

static int wait_once(NodeHold *h, const SlurmOption *o, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        int r, confirmed;

        r = sd_bus_message_new_method_call(h->bus, &m, PERFALLOC_BUS_NAME, h->path,
                                           PERFALLOC_HOLD_INTERFACE, "Wait");
        if (r >= 0)
                r = sd_bus_call(h->bus, m, usec_add(o->wait_usec, GRANT_USEC), error, &reply);
        if (r >= 0)
                r = sd_bus_message_read(reply, "bt", &confirmed, NULL);
        if (r < 0)
                return r;
        h->missing = !confirmed;
        return 0;
}

/* The first of the obstacles, in the service's words. */
static void node_hold_read_obstacles(NodeHold *h) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *who = NULL;

        if (sd_bus_get_property(h->bus, PERFALLOC_BUS_NAME, h->path, PERFALLOC_HOLD_INTERFACE,
                                "Obstacles", NULL, &reply, "a(us)") >= 0 &&
            sd_bus_message_enter_container(reply, 'a', "(us)") > 0)
                (void) sd_bus_message_read(reply, "(us)", NULL, &who);
        (void) snprintf(h->words, sizeof(h->words),
                        "the counters are held, but not confirmed to be free%s%.400s",
                        who ? "; in use by: " : "", who ?: "");
}

static int node_hold_try(NodeHold *h, const SlurmOption *o, uid_t uid, const char *tag,
                         const char *reason) {
        uint64_t end = usec_add(now_usec(CLOCK_MONOTONIC), usec_add(o->wait_usec, GRANT_USEC));

        for (unsigned n = 0;; n++) {
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
                int r = ask_once(h, o, uid, tag, reason, &error);

                if (r >= 0)
                        r = wait_once(h, o, &error);
                if (r >= 0)
                        return 0;
                if (!sd_bus_error_is_set(&error))
                        return r;
                if (n == LOST_MAX || !service_was_lost(&error) || now_usec(CLOCK_MONOTONIC) > end)
                        return node_hold_say(h, error.message);
        }
}

int node_hold_take(NodeHold *h, const SlurmOption *o, uid_t uid, const char *tag,
                   const char *reason) {
        int r = sd_bus_open_system(&h->bus);

        if (r < 0) {
                (void) snprintf(h->words, sizeof(h->words), "there is no system bus: %s",
                                strerror(-r));
                r = NODE_HOLD_E_FAILED;
        } else
                r = node_hold_try(h, o, uid, tag, reason);
        if (r == 0 && h->missing)
                node_hold_read_obstacles(h);
        if (r < 0)
                r = node_hold_say(h, strerror(-r));
        if (r != 0)
                node_hold_release(h);
        h->missing |= r != 0;
        return o->best_effort ? 0 : r;
}

/* Errors are of no use: the hold is tied to the step. */
void node_hold_release(NodeHold *h) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        if (h->bus && h->path &&
            sd_bus_message_new_method_call(h->bus, &m, PERFALLOC_BUS_NAME, h->path,
                                           PERFALLOC_HOLD_INTERFACE, "Release") >= 0)
                (void) sd_bus_call(h->bus, m, END_USEC, NULL, NULL);
        free(TAKE_PTR(h->path));
        h->bus = sd_bus_flush_close_unref(h->bus);
}

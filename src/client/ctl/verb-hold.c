/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/behalf.h"
#include "client/ctl/verbs.h"
#include "client/hold-client.h"
#include "client/hold-words.h"
#include "client/lifetime.h"
#include "client/progress.h"
#include "client/say.h"
#include "client/wording.h"
#include "core/clock.h"

/*
 * hold: a hold without a lease, for scripts, which have no process that stays. After this command
 * the hold exists only if it was granted: after a failure there is nothing to release.
 *
 * So a signal makes it wait once more, for the service to release the hold; a second signal ends
 * that, and the user is told the hold's number.
 */

#define RELEASES_MAX 10                    /* calls that end with the service */
#define AGAIN_USEC   (250 * USEC_PER_MSEC) /* systemd waits 100 ms before a restart */

static int ask_once(Ctl *c, const Behalf *behalf, sd_bus_message **ret, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const CtlOptions *o = c->options;
        int r;

        r = ctl_call_new(c, &m, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                         "HoldUnattended");
        if (r >= 0)
                r = sd_bus_message_append(m, "st", o->hold.reason ?: "perfallocctl hold",
                                          o->lifetime_usec == UINT64_MAX ? 0 : o->lifetime_usec);
        if (r == -EINVAL)
                return refuse(why, CTL_E_USAGE, "--reason is not valid UTF-8");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0)
                r = hold_options_append(m, &o->hold);
        if (r >= 0)
                r = behalf_append(m, o, behalf);
        if (r == -EINVAL)
                return refuse(why, CTL_E_USAGE, "--cpus, --pmu or --tag is not valid UTF-8");
        if (r >= 0 && o->deadline_usec > 0)
                r = sd_bus_message_append(m, "{sv}", "yield_usec", "t", o->deadline_usec);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : ctl_call(c, m, ret, why);
}

/* Finds the hold that this process has asked for since then. It may exist although the reply was
 * lost. *ret_path is NULL if it does not. */
static int find(Ctl *c, uint64_t since, char **ret_path, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        int r = ctl_fetch_all(c, &all, why);

        if (r != 0)
                return r;
        OBJECTS_FOREACH (o, &all, PERFALLOC_HOLD_INTERFACE)
                if (object_number(o, "Pid") == (uint64_t) getpid() &&
                    object_number(o, "RequestTimestamp") >= since) {
                        *ret_path = strdup(o->path);
                        return *ret_path ? 0 : -ENOMEM;
                }
        return 0;
}

static int ask(Ctl *c, const Behalf *behalf, uint64_t since, char **ret_path, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *path;
        int r = ask_once(c, behalf, &reply, why);

        if (r == CTL_E_FAILED && c->lost && ctl_is_local(c)) {
                r = find(c, since, ret_path, why);
                if (r != 0 || *ret_path)
                        return r;
                r = ask_once(c, behalf, &reply, why);
        }
        if (r == 0)
                r = MIN(sd_bus_message_read(reply, "o", &path), 0);
        if (r != 0)
                return r;
        *ret_path = strdup(path);
        return *ret_path ? 0 : -ENOMEM;
}

static void say_granted(const Object *hold, sd_bus_message *granted) {
        _cleanup_free_ char *words = NULL;
        uint64_t latency_usec;
        int confirmed;

        if (sd_bus_message_read(granted, "bt", &confirmed, &latency_usec) < 0)
                return;
        words = hold_words_grant(hold, confirmed, latency_usec);
        if (words)
                say_note("%s", words);
}

static int print_json(Ctl *c, const Object *hold) {
        _cleanup_(table_freep) Table *t = NULL;
        int r = table_new(c, &holds_spec, &t);

        if (r != 0)
                return r;
        table_add_object(t, hold);
        return table_print(t, stdout);
}

/* Prints the number, and reports the grant, even if the properties cannot be read. */
static int show(Ctl *c, const char *path, sd_bus_message *granted, Refusal *why) {
        _cleanup_(object_done) Object hold = OBJECT_NULL;
        int r = ctl_fetch(c, path, PERFALLOC_HOLD_INTERFACE, &hold, why);

        if (r == CTL_E_INTERRUPTED || (r != 0 && c->options->hold.require))
                return r;
        if (hold_is_empty(&hold) && c->options->hold.require)
                return refuse(why, CTL_E_FAILED, HOLD_WORDS_EMPTY);
        say_granted(&hold, granted);
        if (!c->options->tag) /* asked again, the lifetime is what the first call was given */
                lifetime_say_cut(&hold, object_number(&hold, "RequestTimestamp"),
                                 c->options->lifetime_usec);
        if (!c->options->json)
                r = printf("%" PRIu64 "\n", path_number(path)) < 0 ? -errno : 0;
        else if (r == 0)
                r = print_json(c, &hold);
        return r == 0 && fflush(stdout) != 0 ? -errno : r;
}

/* ---- after a failure ---- */

static int on_slow(sd_event_source *source, uint64_t usec, void *userdata) {
        say_note("waiting for perfallocd, to release the hold; another signal ends this");
        return 0;
}

static bool is_over(Ctl *c, const char *path) {
        _cleanup_(object_done) Object hold = OBJECT_NULL;
        Refusal why;
        int r = ctl_fetch(c, path, PERFALLOC_HOLD_INTERFACE, &hold, &why);

        return r == CTL_E_UNKNOWN || (r == 0 && strcmp(object_text(&hold, "State"), "ended") == 0);
}

/* A restart keeps the hold, and the call may end with the service. */
static int release_patiently(Ctl *c, const char *path, Refusal *why) {
        int r = CTL_E_FAILED;

        for (unsigned n = 0; n < RELEASES_MAX && r == CTL_E_FAILED; n++) {
                if (n > 0)
                        (void) sd_event_run(c->event, AGAIN_USEC);
                r = ctl_call_method(c, path, PERFALLOC_HOLD_INTERFACE, "Release", NULL, why, "");
                if (r != 0 && ctl_may_go_on(r) && is_over(c, path))
                        r = 0;
        }
        return r;
}

static void release(Ctl *c, const char *path) {
        Refusal why = REFUSAL_NULL;
        int r = release_patiently(c, path, &why);

        if (r != 0)
                say_error("hold %" PRIu64 " could not be released (%s); to release it: "
                          "perfallocctl release %" PRIu64,
                          path_number(path),
                          r < 0                    ? strerror(-r)
                          : r == CTL_E_INTERRUPTED ? "perfallocd does not answer"
                                                   : why.text,
                          path_number(path));
}

/* Of a signal while the service is asked: the hold may be made by now. Where it is not, nothing is
 * made for who has left. */
static void release_unheard(Ctl *c, uint64_t since) {
        _cleanup_free_ char *path = NULL;
        Refusal why;

        if (ctl_is_local(c) && find(c, since, &path, &why) != 0)
                say_error("perfallocd does not answer: see perfallocctl holds for a hold of "
                          "pid %d",
                          (int) getpid());
        if (path)
                release(c, path);
}

/* path: NULL if the service's answer is not known. The signal that asked to end is kept. */
static void undo(Ctl *c, const char *path, uint64_t since) {
        _cleanup_(sd_event_source_unrefp) sd_event_source *slow = NULL;
        int signo = c->signo;

        c->signo = 0;
        (void) sd_event_add_time_relative(c->event, &slow, CLOCK_MONOTONIC, USEC_PER_SEC, 0,
                                          on_slow, NULL);
        if (path)
                release(c, path);
        else
                release_unheard(c, since);
        c->signo = signo ?: c->signo;
}

/* ---- all ---- */

/* What it waits for is told meanwhile. */
static int await(Ctl *c, const char *path, sd_bus_message **ret, Refusal *why) {
        _cleanup_(progress_stop) Progress progress = PROGRESS_NULL;
        int r = progress_start(&progress, c->bus, ctl_is_local(c));

        if (r < 0)
                return r;
        progress_set_hold(&progress, path);
        return ctl_call_method(c, path, PERFALLOC_HOLD_INTERFACE, "Wait", ret, why, "");
}

int verb_hold(Ctl *c, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *granted = NULL;
        _cleanup_(behalf_done) Behalf behalf = BEHALF_NULL;
        _cleanup_free_ char *path = NULL;
        uint64_t since = now_usec(CLOCK_REALTIME);
        int r;

        wording_has_pidfd();
        r = behalf_prepare(c->options, &behalf, why);
        if (r == 0)
                r = ctl_watch_signals(c);
        if (r == 0)
                r = ask(c, &behalf, since, &path, why);
        if (r == 0)
                r = await(c, path, &granted, why);
        if (r == 0)
                r = show(c, path, granted, why);
        if (path ? r != 0 : r == CTL_E_INTERRUPTED)
                undo(c, path, since);
        return r;
}

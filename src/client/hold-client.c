/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-client.h"

#include <fcntl.h>
#include <perfalloc/dbus.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "client/bus.h"
#include "client/hold-words.h"

#define RELEASE_USEC (5 * USEC_PER_SEC) /* how long a hanging service may delay its client */
#define LOST_MAX     5 /* calls of Hold, because the call itself may crash the service */
#define MISSED_USEC  (250 * USEC_PER_MSEC) /* systemd waits 100 ms before a restart */

static void settle(HoldClient *c, int outcome) {
        c->settled = true;
        c->outcome = outcome;
}

static int settle_error(HoldClient *c, const sd_bus_error *error) {
        (void) bus_refuse(error, &c->why);
        settle(c, HOLD_CLIENT_E_FAILED);
        return 0;
}

static int interrupted(void *userdata, const struct signalfd_siginfo *info) {
        HoldClient *c = userdata;

        c->signo = (int) info->ssi_signo;
        settle(c, HOLD_CLIENT_E_INTERRUPTED);
        return 0;
}

/* Whether the service has closed the other end. It stays open over a restart, because systemd keeps
 * a copy. */
bool hold_client_has_ended(const HoldClient *c) {
        struct pollfd p = { .fd = c->lease };

        return poll(&p, 1, 0) > 0 && p.revents & POLLERR;
}

/* ---- granted ---- */

static int on_view(sd_bus_message *m, void *userdata, sd_bus_error *error);

static int view_hold(HoldClient *c) {
        return sd_bus_call_method_async(c->bus, &c->call, PERFALLOC_BUS_NAME, c->path,
                                        "org.freedesktop.DBus.Properties", "GetAll", on_view, c,
                                        "s", PERFALLOC_HOLD_INTERFACE);
}

static int on_view(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        HoldClient *c = userdata;

        c->call = sd_bus_slot_unref(c->call);
        if (bus_lost_service(m) && !hold_client_has_ended(c) && view_hold(c) >= 0)
                return 0;
        /* it is granted, even if its properties cannot be read */
        if (!sd_bus_message_is_method_error(m, NULL))
                (void) object_read(&c->hold, m, c->path, PERFALLOC_HOLD_INTERFACE);
        settle(c, HOLD_CLIENT_GRANTED);
        return 0;
}

static int on_granted(sd_bus_message *m, void *userdata, sd_bus_error *error);

static int wait_for_grant(HoldClient *c) {
        return bus_call_patiently(c->bus, &c->call, c->path, PERFALLOC_HOLD_INTERFACE, "Wait",
                                  on_granted, c);
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        HoldClient *c = userdata;
        int r;

        c->again = sd_event_source_disable_unref(c->again);
        r = wait_for_grant(c);
        if (r < 0)
                settle(c, r);
        return 0;
}

/* The hold has kept its place in the queue, or is granted by now. */
static bool waits_again(HoldClient *c, sd_bus_message *m) {
        if (hold_client_has_ended(c))
                return false;
        if (bus_lost_service(m))
                return wait_for_grant(c) >= 0;
        return bus_missed_service(m) &&
               sd_event_add_time_relative(c->event, &c->again, CLOCK_MONOTONIC, MISSED_USEC, 0,
                                          on_again, c) >= 0;
}

static int on_granted(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        HoldClient *c = userdata;
        int confirmed, r;

        c->call = sd_bus_slot_unref(c->call);
        if (waits_again(c, m))
                return 0;
        progress_stop(&c->progress);
        if (sd_bus_message_is_method_error(m, NULL))
                return settle_error(c, sd_bus_message_get_error(m));
        r = sd_bus_message_read(m, "bt", &confirmed, &c->latency_usec);
        c->confirmed = confirmed;
        if (r >= 0 && (!c->options->quiet || c->options->require))
                r = view_hold(c);
        else
                settle(c, MIN(r, 0));
        if (r < 0)
                settle(c, r);
        return 0;
}

/* ---- asked ---- */

static int hold_send(HoldClient *c);

static int on_agent(void *userdata) {
        HoldClient *c = userdata;
        int r = hold_send(c);

        if (r < 0)
                settle(c, r);
        return 0;
}

static int ask_interactively(HoldClient *c) {
        char text[128];
        int r;

        (void) snprintf(text, sizeof(text), "waiting for authentication (%s)",
                        c->options->exclusive ? "org.perfalloc1.hold-exclusive"
                                              : "org.perfalloc1.hold");
        progress_say(&c->progress, text);
        c->interactive = true;
        r = agent_start(&c->agent, c->event, c->signals, on_agent, c);
        return r == 0 ? hold_send(c) : MIN(r, 0);
}

static int read_hold(HoldClient *c, sd_bus_message *m) {
        const char *path;
        int fd, r;

        r = sd_bus_message_read(m, "oh", &path, &fd);
        if (r < 0)
                return r;
        c->path = strdup(path);
        if (!c->path)
                return -ENOMEM;
        c->lease = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (c->lease < 0)
                return -errno;
        progress_set_hold(&c->progress, c->path);
        r = lifetime_watch(&c->lifetime, c->bus, c->path);
        return r < 0 ? r : wait_for_grant(c);
}

/* Whether the call was lost. Either the service was about to exit when idle, and the next call
 * starts it. Or it ended during the call: what it had made by then ended with the lease, which has
 * not arrived. */
static bool was_lost(HoldClient *c, sd_bus_message *m) {
        return (bus_missed_service(m) && c->n_lost == 0) ||
               (bus_lost_service(m) && c->n_lost < LOST_MAX);
}

static int on_hold(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        HoldClient *c = userdata;
        int r;

        c->call = sd_bus_slot_unref(c->call);
        if (!c->interactive &&
            sd_bus_message_is_method_error(m, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED))
                r = ask_interactively(c);
        else if (was_lost(c, m)) {
                c->n_lost++;
                r = hold_send(c);
        } else {
                agent_stop(&c->agent);
                if (sd_bus_message_is_method_error(m, NULL))
                        return settle_error(c, sd_bus_message_get_error(m));
                r = read_hold(c, m);
        }
        if (r < 0)
                settle(c, r);
        return 0;
}

/* The base name of COMMAND in printable letters, without its arguments, which are private. */
static int append_reason(sd_bus_message *m, const Options *o) {
        char reason[128] = "perfalloc";

        if (o->reason)
                return sd_bus_message_append(m, "s", o->reason);
        if (o->command)
                (void) snprintf(reason, sizeof(reason), "%s", basename(o->command[0]));
        for (char *p = reason; *p; p++)
                if ((unsigned char) *p < 0x20 || (unsigned char) *p >= 0x7f)
                        *p = '?';
        return sd_bus_message_append(m, "s", reason);
}

static int append_pmus(sd_bus_message *m, char **pmus) {
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append(m, "s", "pmus");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "as");
        if (r >= 0)
                r = sd_bus_message_append_strv(m, pmus);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int hold_options_append(sd_bus_message *m, const Options *o) {
        int r = 0;

        if (o->pmus)
                r = append_pmus(m, o->pmus);
        if (r >= 0 && o->cpus)
                r = sd_bus_message_append(m, "{sv}", "cpus", "s", o->cpus);
        if (r >= 0 && o->counters > 0)
                r = sd_bus_message_append(m, "{sv}", "counters", "u", o->counters);
        if (r >= 0 && o->exclusive)
                r = sd_bus_message_append(m, "{sv}", "mode", "s", "exclusive");
        if (r >= 0 && o->wait_usec > 0)
                r = sd_bus_message_append(m, "{sv}", "wait_usec", "t", o->wait_usec);
        if (r >= 0 && o->best_effort)
                r = sd_bus_message_append(m, "{sv}", "best_effort", "b", 1);
        return r;
}

static int append_options(sd_bus_message *m, const Options *o) {
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0)
                r = hold_options_append(m, o);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int hold_send(HoldClient *c) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(c->bus, &m, PERFALLOC_BUS_NAME, PERFALLOC_OBJECT_PATH,
                                           PERFALLOC_MANAGER_INTERFACE, "Hold");
        if (r >= 0)
                r = sd_bus_message_set_allow_interactive_authorization(m, c->interactive);
        if (r >= 0)
                r = append_reason(m, c->options);
        if (r >= 0)
                r = append_options(m, c->options);
        if (r == -EINVAL) {
                (void) refuse(&c->why, HOLD_CLIENT_E_FAILED,
                              "--reason, --cpus or --pmu is not valid UTF-8");
                settle(c, HOLD_CLIENT_E_FAILED);
                return 0;
        }
        return r < 0 ? r : sd_bus_call_async(c->bus, &c->call, m, on_hold, c, UINT64_MAX);
}

int hold_client_take(HoldClient *c) {
        int r;

        r = signals_watch(c->signals, c->event, SIGNALS_END, interrupted, c);
        if (r >= 0)
                r = progress_start(&c->progress, c->bus, true);
        if (r >= 0)
                r = hold_send(c);
        while (r >= 0 && !c->settled)
                r = sd_event_run(c->event, UINT64_MAX);
        agent_stop(&c->agent);
        progress_stop(&c->progress);
        c->call = sd_bus_slot_unref(c->call);
        return r < 0 ? r : c->outcome;
}

/* ---- ended ---- */

/* Wait always fails now. The service remembers an ended hold for 10 s only, and this process may
 * have been stopped meanwhile. */
static const char *end_words(sd_bus_message *m) {
        const sd_bus_error *error = sd_bus_message_get_error(m);

        if (sd_bus_is_open(sd_bus_message_get_bus(m)) <= 0)
                return "perfallocd or the bus has stopped";
        if (bus_lost_service(m) || bus_missed_service(m))
                return "perfallocd has stopped";
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT))
                return "the hold has ended, and perfallocd no longer knows why";
        return error && error->message ? error->message : "the hold has ended";
}

static int on_end_told(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        HoldClient *c = userdata;

        c->call = sd_bus_slot_unref(c->call);
        c->ended(c->userdata, end_words(m));
        return 0;
}

/* The other end of the lease is closed. Wait on an ended hold returns the reason. Only the service
 * that had the hold knows it, so none is started for that. */
static int on_lease(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        HoldClient *c = userdata;
        int r;

        c->lease_source = sd_event_source_disable_unref(c->lease_source);
        r = sd_bus_message_new_method_call(c->bus, &m, PERFALLOC_BUS_NAME, c->path,
                                           PERFALLOC_HOLD_INTERFACE, "Wait");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(m, false);
        if (r >= 0)
                r = sd_bus_call_async(c->bus, &c->call, m, on_end_told, c, RELEASE_USEC);
        if (r < 0)
                c->ended(c->userdata, "perfallocd or the bus has stopped");
        return 0;
}

int hold_client_watch(HoldClient *c, HoldClientEnded ended, void *userdata) {
        c->ended = ended;
        c->userdata = userdata;
        /* EPOLLERR is always reported */
        return sd_event_add_io(c->event, &c->lease_source, c->lease, 0, on_lease, c);
}

/* False: the service has ended meanwhile. */
static bool release(HoldClient *c) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(c->bus, &m, PERFALLOC_BUS_NAME, c->path,
                                           PERFALLOC_HOLD_INTERFACE, "Release");
        if (r >= 0)
                (void) sd_bus_call(c->bus, m, RELEASE_USEC, &error, NULL);
        return !sd_bus_error_has_name(&error, SD_BUS_ERROR_NO_REPLY);
}

static char **texts_free(char **texts) {
        for (char **t = texts; t && *t; t++)
                free(*t);
        free(texts);
        return NULL;
}
DEFINE_CLEANUP(char **, texts_free)

static char **pmu_texts(const HoldClient *c, const char *path, const char *property) {
        char **texts = NULL;

        (void) sd_bus_get_property_strv(c->bus, PERFALLOC_BUS_NAME, path, PERFALLOC_PMU_INTERFACE,
                                        property, NULL, &texts);
        return texts;
}

char *hold_client_kernel(const HoldClient *c, const char *pmu) {
        _cleanup_(texts_freep) char **kernel = NULL, **fixed = NULL;
        _cleanup_free_ char *path = NULL;

        if (sd_bus_path_encode(PERFALLOC_OBJECT_PATH "/pmu", pmu, &path) < 0)
                return NULL;
        kernel = pmu_texts(c, path, "Kernel");
        if (kernel && *kernel)
                fixed = pmu_texts(c, path, "Fixed");
        return hold_words_kernel(pmu, kernel, fixed);
}

void hold_client_release(HoldClient *c) {
        c->lease_source = sd_event_source_disable_unref(c->lease_source);
        c->call = sd_bus_slot_unref(c->call);
        lifetime_done(&c->lifetime);
        for (unsigned n = 0; n < 2 && !hold_client_has_ended(c) && !release(c); n++)
                ;
        c->lease = close_fd(c->lease);
}

int hold_client_open(HoldClient *c, const Options *options, Signals *signals) {
        int r;

        *c = HOLD_CLIENT_NULL;
        c->options = options;
        c->signals = signals;
        r = bus_open(&c->bus, &c->why);
        if (r != 0)
                return r < 0 ? r : HOLD_CLIENT_E_FAILED;
        r = sd_event_new(&c->event);
        return r < 0 ? r : sd_bus_attach_event(c->bus, c->event, SD_EVENT_PRIORITY_NORMAL);
}

void hold_client_close(HoldClient *c) {
        agent_stop(&c->agent);
        progress_stop(&c->progress);
        lifetime_done(&c->lifetime);
        c->call = sd_bus_slot_unref(c->call);
        c->again = sd_event_source_disable_unref(c->again);
        c->lease_source = sd_event_source_disable_unref(c->lease_source);
        c->lease = close_fd(c->lease);
        if (c->bus)
                (void) sd_bus_detach_event(c->bus);
        c->bus = sd_bus_flush_close_unref(c->bus);
        c->event = sd_event_unref(c->event);
        object_done(&c->hold);
        free(c->path);
        *c = HOLD_CLIENT_NULL;
}

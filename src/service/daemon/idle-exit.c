/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "idle-exit.h"

#include <perfalloc/dbus.h>
#include <systemd/sd-daemon.h>

#include "core/clock.h"
#include "service/bus/request.h"
#include "service/util/log.h"

/* How long leaving may take, and how often the service checks whether it is done. */
#define LEAVE_USEC (3 * USEC_PER_SEC)
#define LOOK_USEC  (10 * USEC_PER_MSEC)

struct IdleExit {
        Context *context;
        bool (*is_idle)(const void *userdata);
        const void *userdata;
        sd_event_source *timer, *deadline;
        sd_bus_slot *filter;
        bool leaving;  /* for good */
        bool released; /* the name is released: no new calls to it */
};

static bool idle_exit_is_due(const IdleExit *x) {
        return x->is_idle(x->userdata) && !requests_any(x->context->requests);
}

static int idle_exit_again(IdleExit *x, uint64_t usec) {
        (void) sd_event_source_set_time_relative(x->timer, usec);
        return sd_event_source_set_enabled(x->timer, SD_EVENT_ONESHOT);
}

void idle_exit_touch(IdleExit *x) {
        if (x->leaving)
                return;
        if (idle_exit_is_due(x))
                (void) idle_exit_again(x, x->context->config.idle_exit_usec);
        else
                (void) sd_event_source_set_enabled(x->timer, SD_EVENT_OFF);
}

bool idle_exit_is_leaving(const IdleExit *x) {
        return x->leaving;
}

/* The name is released. All messages that were sent to it are in our queue by now, and are answered
 * first: the timer has a lower priority than the bus. */
static int name_released(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        IdleExit *x = userdata;

        x->released = true;
        return MIN(idle_exit_again(x, 0), 0);
}

static int leave(const IdleExit *x) {
        return sd_event_exit(x->context->event, EXIT_SUCCESS);
}

/* Clients may call all the time, or the bus may not answer. */
static int leaving_takes_too_long(sd_event_source *source, uint64_t usec, void *userdata) {
        return leave(userdata);
}

/* From here on the service leaves in any case. */
static int idle_exit_begin(IdleExit *x) {
        sd_event *event = x->context->event;
        int r;

        log_plain(LOG_DEBUG, "Idle; exiting.");
        (void) sd_notify(false, "STOPPING=1");
        x->leaving = true;
        r = sd_event_add_time_relative(event, &x->deadline, CLOCK_MONOTONIC, LEAVE_USEC, 0,
                                       leaving_takes_too_long, x);
        if (r >= 0)
                r = sd_event_source_set_priority(x->deadline, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
                r = sd_bus_release_name_async(x->context->bus, NULL, PERFALLOC_BUS_NAME,
                                              name_released, x);
        return r < 0 ? sd_event_exit(event, EXIT_FAILURE) : 0;
}

static int idle_exit_elapsed(sd_event_source *source, uint64_t usec, void *userdata) {
        IdleExit *x = userdata;
        uint64_t idle_usec = x->context->config.idle_exit_usec;
        uint64_t quiet_usec = now_usec(CLOCK_MONOTONIC) - x->context->called_usec;

        if (x->leaving)
                return x->released && !requests_any(x->context->requests)
                               ? leave(x)
                               : idle_exit_again(x, LOOK_USEC);
        if (!idle_exit_is_due(x))
                return idle_exit_again(x, idle_usec);
        if (quiet_usec < idle_usec)
                return idle_exit_again(x, idle_usec - quiet_usec);
        return idle_exit_begin(x);
}

/* The calls that change nothing. A member of NULL is all of the interface. */
static bool call_only_reads(sd_bus_message *m) {
        static const struct {
                const char *interface, *member;
        } calls[] = {
                { "org.freedesktop.DBus.Properties", "Get" },
                { "org.freedesktop.DBus.Properties", "GetAll" },
                { "org.freedesktop.DBus.Introspectable", NULL },
                { "org.freedesktop.DBus.ObjectManager", NULL },
                { "org.freedesktop.DBus.Peer", NULL },
                { PERFALLOC_MANAGER_INTERFACE, "EncodeEvent" },
                { PERFALLOC_MANAGER_INTERFACE, "HasSamplers" },
                { PERFALLOC_MANAGER_INTERFACE, "ListEvents" },
                { PERFALLOC_MANAGER_INTERFACE, "ListPersistent" },
                { PERFALLOC_MANAGER_INTERFACE, "ListUsers" },
        };

        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                if (sd_bus_message_is_method_call(m, calls[i].interface, calls[i].member))
                        return true;
        return false;
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const IdleExit *x = userdata;

        if (!x->leaving || !sd_bus_message_is_method_call(m, NULL, NULL) || call_only_reads(m))
                return 0;
        return sd_bus_reply_method_errorf(
                m, SD_BUS_ERROR_SERVICE_UNKNOWN,
                "the service is exiting because it is idle; call again, which "
                "starts it");
}

int idle_exit_new(Context *context, bool (*is_idle)(const void *userdata), const void *userdata,
                  IdleExit **ret) {
        IdleExit *x = calloc(1, sizeof(*x));
        int r;

        if (!x)
                return -ENOMEM;
        *x = (IdleExit){ .context = context, .is_idle = is_idle, .userdata = userdata };
        r = sd_event_add_time_relative(context->event, &x->timer, CLOCK_MONOTONIC, 0, USEC_PER_SEC,
                                       idle_exit_elapsed, x);
        if (r >= 0)
                r = sd_event_source_set_enabled(x->timer, SD_EVENT_OFF);
        if (r >= 0) /* calls that have arrived are handled first */
                r = sd_event_source_set_priority(x->timer, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = sd_bus_add_filter(context->bus, &x->filter, on_message, x);
        if (r < 0) {
                idle_exit_free(x);
                return r;
        }
        *ret = x;
        return 0;
}

IdleExit *idle_exit_free(IdleExit *x) {
        if (!x)
                return NULL;
        sd_event_source_disable_unref(x->timer);
        sd_event_source_disable_unref(x->deadline);
        sd_bus_slot_unref(x->filter);
        free(x);
        return NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "idle-exit.h"

#include <perfalloc/dbus.h>
#include <systemd/sd-daemon.h>

#include "core/clock.h"
#include "service/bus/request.h"
#include "service/util/log.h"

struct IdleExit {
        Context *context;
        bool (*is_idle)(const void *userdata);
        const void *userdata;
        sd_event_source *timer;
        sd_bus_slot *filter;
        bool released; /* the name is released; exit when nothing more arrives */
};

static bool idle_exit_is_due(const IdleExit *x) {
        return x->is_idle(x->userdata) && !requests_any(x->context->requests);
}

static int idle_exit_again(IdleExit *x, uint64_t usec) {
        (void) sd_event_source_set_time_relative(x->timer, usec);
        return sd_event_source_set_enabled(x->timer, SD_EVENT_ONESHOT);
}

void idle_exit_touch(IdleExit *x) {
        if (x->released)
                return;
        if (idle_exit_is_due(x))
                (void) idle_exit_again(x, x->context->config.idle_exit_usec);
        else
                (void) sd_event_source_set_enabled(x->timer, SD_EVENT_OFF);
}

/* The name is released. All messages that were sent to it are in our queue by now, and are answered
 * first. */
static int name_released(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        IdleExit *x = userdata;

        (void) sd_event_source_set_priority(x->timer, SD_EVENT_PRIORITY_IDLE);
        return MIN(idle_exit_again(x, 0), 0);
}

static int idle_exit_begin(IdleExit *x) {
        int r;

        log_plain(LOG_DEBUG, "Nothing to do; leaving.");
        (void) sd_notify(false, "STOPPING=1");
        x->released = true;
        r = sd_bus_release_name_async(x->context->bus, NULL, PERFALLOC_BUS_NAME, name_released, x);
        return r < 0 ? sd_event_exit(x->context->event, EXIT_FAILURE) : 0;
}

static int idle_exit_elapsed(sd_event_source *source, uint64_t usec, void *userdata) {
        IdleExit *x = userdata;
        uint64_t idle_usec = x->context->config.idle_exit_usec;
        uint64_t quiet_usec = now_usec(CLOCK_MONOTONIC) - x->context->called_usec;

        if (x->released) {
                if (idle_exit_is_due(x))
                        return sd_event_exit(x->context->event, EXIT_SUCCESS);
                /* Calls came first: they are answered, without the name. */
                return idle_exit_again(x, USEC_PER_SEC / 10);
        }
        if (!idle_exit_is_due(x))
                return idle_exit_again(x, idle_usec);
        if (quiet_usec < idle_usec)
                return idle_exit_again(x, idle_usec - quiet_usec);
        return idle_exit_begin(x);
}

/* Whether the call creates an object. */
static bool call_makes_something(sd_bus_message *m) {
        static const char *const members[] = {
                "Hold",      "HoldUnattended", "OpenCounters",    "OpenPersistent",
                "OpenEvent", "CreateSampler",  "RegisterMonitor",
        };

        for (size_t i = 0; i < ELEMENTSOF(members); i++)
                if (sd_bus_message_is_method_call(m, PERFALLOC_MANAGER_INTERFACE, members[i]))
                        return true;
        return false;
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const IdleExit *x = userdata;

        if (!x->released || !call_makes_something(m))
                return 0;
        return sd_bus_reply_method_errorf(
                m, SD_BUS_ERROR_SERVICE_UNKNOWN,
                "the service is just leaving, for it had nothing to do; call "
                "again, and it is started anew");
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
        sd_bus_slot_unref(x->filter);
        free(x);
        return NULL;
}

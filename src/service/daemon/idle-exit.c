/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "idle-exit.h"

#include <string.h>
#include <systemd/sd-daemon.h>

#include "service/sampler/sampler.h"
#include "service/util/log.h"

static bool service_is_idle(const Service *s) {
        return s->n_holds == 0 && s->n_monitors == 0 && TAILQ_EMPTY(&s->ended) &&
               LIST_EMPTY(&s->sets) && LIST_EMPTY(&s->calls) &&
               scheduler_n_waiting(s->turns) == 0 && samplers_are_idle(s);
}

void service_touch(Service *s) {
        if (!s->idle || s->leaving)
                return;
        if (!service_is_idle(s)) {
                (void) sd_event_source_set_enabled(s->idle, SD_EVENT_OFF);
                return;
        }
        (void) sd_event_source_set_time_relative(s->idle, s->config.idle_exit_usec);
        (void) sd_event_source_set_enabled(s->idle, SD_EVENT_ONESHOT);
}

/* The name is gone; whatever was sent to it before that is in our queue by now, and is answered
 * first. */
static int name_released(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Service *s = userdata;

        (void) sd_event_source_set_time_relative(s->idle, 0);
        (void) sd_event_source_set_priority(s->idle, SD_EVENT_PRIORITY_IDLE);
        return MIN(sd_event_source_set_enabled(s->idle, SD_EVENT_ONESHOT), 0);
}

static int service_idled(sd_event_source *source, uint64_t usec, void *userdata) {
        Service *s = userdata;
        int r;

        if (s->leaving) {
                if (service_is_idle(s) && auth_n_waiting(s->auth) == 0)
                        return sd_event_exit(s->event, EXIT_SUCCESS);
                /* Somebody was faster: answer him, and stay without the name until he is done. */
                (void) sd_event_source_set_time_relative(source, USEC_PER_SEC / 10);
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        if (!service_is_idle(s) || auth_n_waiting(s->auth) > 0) {
                (void) sd_event_source_set_time_relative(source, s->config.idle_exit_usec);
                return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        log_plain(LOG_DEBUG, "Nothing to do; leaving.");
        (void) sd_notify(false, "STOPPING=1");
        s->leaving = true;
        r = sd_bus_release_name_async(s->bus, NULL, PERFALLOC_BUS_NAME, name_released, s);
        return r < 0 ? sd_event_exit(s->event, EXIT_FAILURE) : 0;
}

int idle_exit_make_timer(Service *s) {
        int r = sd_event_add_time_relative(s->event, &s->idle, CLOCK_MONOTONIC, 0, USEC_PER_SEC,
                                           service_idled, s);

        return r < 0 ? r : sd_event_source_set_enabled(s->idle, SD_EVENT_OFF);
}

/* The methods that make something which stays. */
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

static int idle_exit_filter(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const Service *s = userdata;

        if (!s->leaving || !call_makes_something(m))
                return 0;
        return sd_bus_reply_method_errorf(
                m, SD_BUS_ERROR_SERVICE_UNKNOWN,
                "the service is just leaving, for it had nothing to do; call "
                "again, and it is started anew");
}

int idle_exit_init(Service *s) {
        return sd_bus_add_filter(s->bus, NULL, idle_exit_filter, s);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unit-job.h"

#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-login.h>

#include "core/clock.h"

#define SYSTEMD     "org.freedesktop.systemd1"
#define UNIT_PREFIX "/org/freedesktop/systemd1/unit"

/* For the connection, and for each question. */
#define ASK_USEC USEC_PER_SEC

static int bus_await_ready(sd_bus *bus) {
        uint64_t until = now_usec(CLOCK_MONOTONIC) + ASK_USEC, now;
        int r;

        while ((r = sd_bus_is_ready(bus)) == 0) {
                r = sd_bus_process(bus, NULL);
                now = now_usec(CLOCK_MONOTONIC);
                if (r == 0)
                        r = now < until ? sd_bus_wait(bus, until - now) : -ETIMEDOUT;
                if (r < 0)
                        break;
        }
        return r;
}

static int job_of_unit(sd_bus *bus, const char *unit, char **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_free_ char *path = NULL;
        const char *job;
        int r = sd_bus_path_encode(UNIT_PREFIX, unit, &path);

        if (r >= 0)
                r = sd_bus_get_property(bus, SYSTEMD, path, SYSTEMD ".Unit", "Job", NULL, &reply,
                                        "(uo)");
        if (r >= 0)
                r = sd_bus_message_read(reply, "(uo)", NULL, &job);
        if (r < 0)
                return r;
        *ret = strdup(job);
        return *ret ? 0 : -ENOMEM;
}

bool unit_job_is_stop(void) {
        _cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
        _cleanup_free_ char *unit = NULL, *job = NULL, *type = NULL;
        int r = sd_pid_get_unit(0, &unit);

        if (r >= 0)
                r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = bus_await_ready(bus);
        if (r >= 0)
                r = sd_bus_set_method_call_timeout(bus, ASK_USEC);
        if (r >= 0)
                r = job_of_unit(bus, unit, &job);
        if (r >= 0)
                r = sd_bus_get_property_string(bus, SYSTEMD, job, SYSTEMD ".Job", "JobType", NULL,
                                               &type);
        return r >= 0 && strcmp(type, "stop") == 0;
}

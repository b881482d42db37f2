/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unit-job.h"

#include <string.h>
#include <systemd/sd-login.h>

#define SYSTEMD     "org.freedesktop.systemd1"
#define UNIT_PREFIX "/org/freedesktop/systemd1/unit"

static int job_of_unit(sd_bus *bus, char **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_free_ char *unit = NULL, *path = NULL;
        const char *job;
        int r = sd_pid_get_unit(0, &unit);

        if (r >= 0)
                r = sd_bus_path_encode(UNIT_PREFIX, unit, &path);
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

bool unit_job_is_stop(sd_bus *bus) {
        _cleanup_free_ char *job = NULL, *type = NULL;
        int r = sd_bus_set_method_call_timeout(bus, USEC_PER_SEC);

        if (r >= 0)
                r = job_of_unit(bus, &job);
        if (r >= 0)
                r = sd_bus_get_property_string(bus, SYSTEMD, job, SYSTEMD ".Job", "JobType", NULL,
                                               &type);
        return r >= 0 && strcmp(type, "stop") == 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reply.h"

#include <string.h>

static void fill_error(int r, const Refusal *why, sd_bus_error *error) {
        if (r > 0)
                (void) sd_bus_error_set(error, refusal_name(r), why->text);
        else if (r == -ENOMEM)
                (void) sd_bus_error_set(error, SD_BUS_ERROR_NO_MEMORY,
                                        "the service is out of memory; nothing was done");
        else if (r == -EMFILE || r == -ENFILE || r == -ETOOMANYREFS)
                (void) sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                        "the service has no descriptor left (LimitNOFILE= in "
                                        "perfallocd.service); nothing was done");
        else if (r == -EPIPE)
                (void) sd_bus_error_set(error, SD_BUS_ERROR_FAILED,
                                        "the reader, a process of the service, has died or does "
                                        "not answer, so the service restarts: call again");
        else
                (void) sd_bus_error_setf(error, SD_BUS_ERROR_FAILED, "%s", strerror(-r));
}

int reply_failure(int r, const Refusal *why, sd_bus_error *error) {
        if (r == -ESTALE || r == -EINPROGRESS)
                return 1;
        fill_error(r, why, error);
        return -sd_bus_error_get_errno(error);
}

void reply_failure_later(sd_bus_message *m, int r, const Refusal *why) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        if (r == -ESTALE)
                return;
        fill_error(r, why, &error);
        (void) sd_bus_reply_method_error(m, &error);
}

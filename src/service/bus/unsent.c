/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unsent.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "core/clock.h"
#include "service/util/log.h"

uint64_t unsent_n(const Unsent *u) {
        uint64_t n = 0;

        (void) sd_bus_get_n_queued_write(u->bus, &n);
        return n;
}

/* Whether the bus is behind with reading. libsystemd's queue is empty as long as the socket has
 * room; what was written a moment ago is in the socket too. */
static bool unsent_is_behind(const Unsent *u) {
        int n = 0;

        (void) ioctl(sd_bus_get_fd(u->bus), SIOCOUTQ, &n);
        return unsent_n(u) > 0 || n >= UNSENT_SOCKET_BYTES;
}

void unsent_watch(Unsent *u) {
        uint64_t now = now_usec(CLOCK_MONOTONIC);

        if (now - u->looked_usec < UNSENT_LOOK_USEC)
                return;
        u->looked_usec = now;
        if (unsent_is_behind(u)) {
                u->since_usec = u->since_usec ?: now;
                return;
        }
        if (u->logged)
                log_plain(LOG_NOTICE, "The bus accepts messages of the service again.");
        u->since_usec = 0;
        u->logged = false;
}

bool unsent_is_stuck(Unsent *u) {
        bool lasts;

        unsent_watch(u);
        lasts = u->since_usec > 0 && now_usec(CLOCK_MONOTONIC) - u->since_usec >= UNSENT_USEC;
        if (lasts && !u->logged) {
                u->logged = true;
                log_event(LOG_WARNING, LOG_ID_DEGRADED,
                          "The bus does not accept messages of the service: a client does not read "
                          "its replies (see perfallocd(8)). Calls wait until it does.",
                          NULL);
        }
        return lasts || unsent_n(u) >= UNSENT_MAX;
}

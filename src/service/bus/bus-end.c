/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus-end.h"

#include <inttypes.h>

#include "core/clock.h"
#include "service/util/fd-copies.h"
#include "service/util/log.h"

static int message_drop(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return 1;
}

static uint64_t unsent(sd_bus *bus) {
        uint64_t n = 0;

        if (sd_bus_is_open(bus) > 0) /* a lost one is logged by bus-lost.c */
                (void) sd_bus_get_n_queued_write(bus, &n);
        return n;
}

/* libsystemd runs the filter that was added last first. */
static void bus_flush(sd_bus *bus) {
        uint64_t until = now_usec(CLOCK_MONOTONIC) + BUS_END_USEC, now;
        int r = sd_bus_add_filter(bus, NULL, message_drop, NULL);

        while (r >= 0 && unsent(bus) > 0 && (now = now_usec(CLOCK_MONOTONIC)) < until) {
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(bus, until - now);
        }
}

static void bus_close(sd_bus *bus) {
        const int fd = sd_bus_get_fd(bus);
        FdCopies copies;
        int r = fd < 0 ? fd : fd_copies_make(&copies, &fd, 1);

        sd_bus_close(bus);
        if (r == 0)
                fd_copies_drop(&copies);
}

void bus_end(sd_bus *bus) {
        uint64_t n;

        (void) sd_bus_set_exit_on_disconnect(bus, false);
        bus_flush(bus);
        n = unsent(bus);
        if (n > 0)
                log_plain(LOG_WARNING,
                          "%" PRIu64 " messages were not sent at the end: the bus does not accept "
                          "them, because a client does not read its replies (see perfallocd(8)).",
                          n);
        bus_close(bus);
}

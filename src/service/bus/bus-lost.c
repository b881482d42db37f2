/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus-lost.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "service/util/log.h"

/* libsystemd does not report why it closed a connection. The socket is still open, and tells. */
static void disconnect_reason(sd_bus *bus, char *buffer, size_t size) {
        char byte;
        ssize_t n = recv(sd_bus_get_fd(bus), &byte, 1, MSG_PEEK | MSG_DONTWAIT);

        if (n == 0)
                (void) snprintf(buffer, size,
                                "the bus has closed it: it was stopped, or a limit was exceeded");
        else if (n < 0 && errno != EAGAIN)
                (void) snprintf(buffer, size, "%s (errno %d)", strerror(errno), errno);
        else
                (void) snprintf(buffer, size,
                                "the service has closed it: a message could not be read or sent");
}

static int disconnect_filter(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        sd_bus *bus = sd_bus_message_get_bus(m);
        uint64_t n_read = 0, n_write = 0;
        char reason[128], text[320];

        /* from libsystemd itself: the bus lets nobody send from this path */
        if (!sd_bus_message_is_signal(m, "org.freedesktop.DBus.Local", "Disconnected"))
                return 0;
        disconnect_reason(bus, reason, sizeof(reason));
        (void) sd_bus_get_n_queued_read(bus, &n_read);
        (void) sd_bus_get_n_queued_write(bus, &n_write);
        (void) snprintf(text, sizeof(text),
                        "The connection to the bus is lost: %s; %" PRIu64
                        " messages were not sent, %" PRIu64
                        " were not handled. The service exits and is restarted.",
                        reason, n_write, n_read);
        log_event(LOG_ERR, LOG_ID_DEGRADED, text, NULL);
        return 0;
}

int bus_lost_init(sd_bus *bus) {
        return sd_bus_add_filter(bus, NULL, disconnect_filter, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lifetime.h"

#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <string.h>

#include "client/bus.h"
#include "client/hold-words.h"
#include "client/say.h"
#include "core/clock.h"
#include "core/timespan.h"

#define WARNING_USEC (60 * USEC_PER_SEC) /* Expiring comes so long before the end */

/* ---- cut ---- */

void lifetime_say_cut(const Object *hold, uint64_t since_usec, uint64_t asked_usec) {
        uint64_t asked = asked_usec > 0 ? asked_usec : TIMESPAN_INFINITY;
        uint64_t expires = object_number(hold, "ExpireTimestamp");
        _cleanup_free_ char *lasts = NULL, *wanted = NULL;
        bool unlimited = asked == TIMESPAN_INFINITY;

        /* the service's clock reads a moment later than ours */
        if (expires == 0 || expires >= usec_add(since_usec, asked))
                return;
        lasts = timespan_format(expires - since_usec);
        wanted = timespan_format(asked);
        if (lasts && wanted)
                say_note("the hold ends after %s%s%s, the limit of HoldMaxSec= in perfallocd.conf",
                         lasts, unlimited ? "" : ", not ", unlimited ? "" : wanted);
}

/* ---- about to expire ---- */

static void lifetime_say_expiring(Lifetime *l, const Object *hold) {
        uint64_t expires = object_number(hold, "ExpireTimestamp"), now = now_usec(CLOCK_REALTIME);
        _cleanup_free_ char *left = NULL;
        char when[HOLD_TIME_MAX];

        /* anybody on the bus can send a signal */
        if (expires <= now || expires > now + WARNING_USEC || expires == l->said_usec)
                return;
        l->said_usec = expires;
        left = timespan_format(expires - now);
        if (left)
                say_error("warning: the hold ends in %s, at %s; to make it last longer: "
                          "perfallocctl extend %" PRIu64,
                          left, hold_words_time(expires, when), hold->number);
}

static int on_viewed(sd_bus_message *m, void *userdata, sd_bus_error *error);

static int lifetime_view(Lifetime *l) {
        int r = sd_bus_call_method_async(l->bus, &l->call, PERFALLOC_BUS_NAME, l->path,
                                         "org.freedesktop.DBus.Properties", "GetAll", on_viewed, l,
                                         "s", PERFALLOC_HOLD_INTERFACE);

        return MIN(r, 0);
}

static int on_viewed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(object_done) Object hold = OBJECT_NULL;
        Lifetime *l = userdata;

        l->call = sd_bus_slot_unref(l->call);
        if (bus_lost_service(m))
                return lifetime_view(l);
        if (!sd_bus_message_is_method_error(m, NULL) &&
            object_read(&hold, m, l->path, PERFALLOC_HOLD_INTERFACE) >= 0)
                lifetime_say_expiring(l, &hold);
        return 0;
}

/* Sent to this connection, so no match is needed. A match would miss what comes before the bus has
 * added it. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Lifetime *l = userdata;

        if (l->call || !sd_bus_message_is_signal(m, PERFALLOC_HOLD_INTERFACE, "Expiring") ||
            strcmp(sd_bus_message_get_path(m), l->path) != 0)
                return 0;
        return lifetime_view(l);
}

int lifetime_watch(Lifetime *l, sd_bus *bus, const char *path) {
        l->bus = bus;
        l->path = path;
        return MIN(sd_bus_add_filter(bus, &l->messages, on_message, l), 0);
}

void lifetime_done(Lifetime *l) {
        l->messages = sd_bus_slot_unref(l->messages);
        l->call = sd_bus_slot_unref(l->call);
}

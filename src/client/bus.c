/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus.h"

#include <perfalloc/dbus.h>
#include <string.h>

#include "client/wording.h"

static int refuse_connection(int r, Refusal *why) {
        if (r == -ENOMEM)
                return r;
        return refuse(why, BUS_E_FAILED,
                      "cannot connect to the system bus (%s); perfalloc needs dbus and perfallocd",
                      strerror(-r));
}

int bus_open_at(BusPlace place, const char *name, sd_bus **ret, Refusal *why) {
        int r;

        switch (place) {
        case BUS_HOST:
                r = sd_bus_open_system_remote(ret, name);
                break;
        case BUS_MACHINE:
                r = sd_bus_open_system_machine(ret, name);
                break;
        default:
                r = sd_bus_open_system(ret);
        }
        if (r >= 0)
                return 0;
        if (r == -ENOMEM || place == BUS_HERE)
                return refuse_connection(r, why);
        return refuse(why, BUS_E_FAILED, "cannot connect to the system bus of %s (%s)", name,
                      strerror(-r));
}

int bus_open(sd_bus **ret, Refusal *why) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        int r;

        r = bus_open_at(BUS_HERE, NULL, &bus, why);
        if (r != 0)
                return r;
        r = sd_bus_can_send(bus, SD_BUS_TYPE_UNIX_FD);
        if (r < 0)
                return refuse_connection(r, why);
        if (r == 0)
                return refuse(
                        why, BUS_E_FAILED,
                        "this connection to the system bus carries no descriptors, and a hold "
                        "needs one; for another host: ssh HOST perfalloc ...");
        *ret = TAKE_PTR(bus);
        return 0;
}

static const char *hint(const char *name) {
        static const char *const plain[] = {
                SD_BUS_ERROR_ACCESS_DENIED,  SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                SD_BUS_ERROR_INVALID_ARGS,   SD_BUS_ERROR_LIMITS_EXCEEDED,
                SD_BUS_ERROR_UNKNOWN_OBJECT,
        };

        if (strncmp(name, PERFALLOC_ERROR_PREFIX, strlen(PERFALLOC_ERROR_PREFIX)) == 0)
                return "";
        for (size_t i = 0; i < ELEMENTSOF(plain); i++)
                if (strcmp(plain[i], name) == 0)
                        return "";
        if (strcmp(name, SD_BUS_ERROR_SERVICE_UNKNOWN) == 0 ||
            strcmp(name, SD_BUS_ERROR_NAME_HAS_NO_OWNER) == 0)
                return " (is perfallocd installed? see systemctl status perfallocd)";
        return " (see systemctl status perfallocd)";
}

int bus_refuse(const sd_bus_error *error, Refusal *why) {
        char text[REFUSAL_TEXT_MAX];

        wording_of_error(error, text);
        return refuse(why, BUS_E_FAILED, "%s%s", text, hint(error->name));
}

bool bus_lost_service(sd_bus_message *reply) {
        return sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NO_REPLY) &&
               sd_bus_is_open(sd_bus_message_get_bus(reply)) > 0;
}

/* Why an activation has failed has many names, of which each bus has its own. */
bool bus_missed_service(sd_bus_message *reply) {
        const char *sender = sd_bus_message_get_sender(reply);

        return sender && strcmp(sender, "org.freedesktop.DBus") == 0 &&
               sd_bus_message_is_method_error(reply, NULL) &&
               !sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NO_REPLY) &&
               !sd_bus_message_is_method_error(reply, SD_BUS_ERROR_ACCESS_DENIED);
}

int bus_call_patiently(sd_bus *bus, sd_bus_slot **ret_slot, const char *path, const char *interface,
                       const char *member, sd_bus_message_handler_t done, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, PERFALLOC_BUS_NAME, path, interface, member);
        return r < 0 ? r : sd_bus_call_async(bus, ret_slot, m, done, userdata, UINT64_MAX);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A polkit agent for a login session that answers at once, without a password: yes, or by
 * disconnecting. It runs as root, who may answer for every user
 * (org.freedesktop.PolicyKit1.Authority, AuthenticationAgentResponse). AuthenticationAgentResponse2
 * also takes the agent's user: root in polkit 122, the user of the session in 128.
 *
 * usage: polkit-agent SESSION yes|no
 *
 * Prints "ready" when it is registered, then the action of each request.
 */

#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

#define AGENT_PATH "/org/perfalloc1/test/agent"
#define AUTHORITY                                                                                  \
        "org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority",                     \
                "org.freedesktop.PolicyKit1.Authority"

static int begin(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *action, *message, *icon, *cookie;
        int r;

        r = sd_bus_message_read(m, "sss", &action, &message, &icon);
        if (r >= 0)
                r = sd_bus_message_skip(m, "a{ss}");
        if (r >= 0)
                r = sd_bus_message_read(m, "s", &cookie);
        if (r < 0)
                return r;
        printf("%s: %s\n", action, message);
        fflush(stdout);
        if (strcmp(userdata, "yes") != 0)
                return sd_bus_error_set(error, "org.freedesktop.PolicyKit1.Error.Cancelled", "no");
        r = sd_bus_call_method(sd_bus_message_get_bus(m), AUTHORITY, "AuthenticationAgentResponse",
                               error, NULL, "s(sa{sv})", cookie, "unix-user", 1, "uid", "u", 0);
        return r < 0 ? r : sd_bus_reply_method_return(m, NULL);
}

static int cancel(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable agent_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("BeginAuthentication", "sssa{ss}sa(sa{sv})", NULL, begin,
                      SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("CancelAuthentication", "s", NULL, cancel, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

int main(int argc, char *argv[]) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus *bus;
        int r;

        if (argc != 3)
                return 2;
        r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = sd_bus_add_object_vtable(bus, NULL, AGENT_PATH,
                                             "org.freedesktop.PolicyKit1.AuthenticationAgent",
                                             agent_vtable, argv[2]);
        if (r >= 0)
                r = sd_bus_call_method(bus, AUTHORITY, "RegisterAuthenticationAgent", &error, NULL,
                                       "(sa{sv})ss", "unix-session", 1, "session-id", "s", argv[1],
                                       "C", AGENT_PATH);
        if (r < 0) {
                fprintf(stderr, "polkit-agent: %s\n", error.message ? error.message : strerror(-r));
                return 1;
        }
        puts("ready");
        fflush(stdout);
        for (;;) {
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(bus, UINT64_MAX);
                if (r < 0)
                        return 1;
        }
}

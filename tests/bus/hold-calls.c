/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hold-calls.h"

#include <fcntl.h>

char *hold_take(Client *c, int *ret_lease, const char *types, ...) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "Hold"), reply = NULL;
        const char *path;
        va_list ap;
        int lease;

        bus_check(sd_bus_message_append_basic(m, 's', "a test"), "Hold");
        va_start(ap, types);
        bus_check(sd_bus_message_appendv(m, types, ap), "Hold");
        va_end(ap);
        reply = client_call_message(c, m);
        bus_check(sd_bus_message_read(reply, "oh", &path, &lease), "Hold");
        *ret_lease = fcntl(lease, F_DUPFD_CLOEXEC, 3);
        g_assert_cmpint(*ret_lease, >=, 0);
        return g_strdup(path);
}

char *hold_take_unattended(Client *c, uint64_t lifetime_usec, const char *types, ...) {
        g_autoptr(sd_bus_message) m = client_message(c, MANAGER, "HoldUnattended"), reply = NULL;
        const char *path;
        va_list ap;

        bus_check(sd_bus_message_append(m, "st", "a test", lifetime_usec), "HoldUnattended");
        va_start(ap, types);
        bus_check(sd_bus_message_appendv(m, types, ap), "HoldUnattended");
        va_end(ap);
        reply = client_call_message(c, m);
        bus_check(sd_bus_message_read(reply, "o", &path), "HoldUnattended");
        return g_strdup(path);
}

bool hold_wait(Client *c, const char *path) {
        g_autoptr(sd_bus_message) reply = client_call(c, path, HOLD, "Wait", NULL);
        int confirmed;

        bus_check(sd_bus_message_read(reply, "bt", &confirmed, NULL), "Wait");
        return confirmed;
}

void hold_release(Client *c, const char *path) {
        sd_bus_message_unref(client_call(c, path, HOLD, "Release", NULL));
}

bool hold_is(Client *c, const char *path, const char *state) {
        return client_reads(c, path, HOLD, "State", state);
}

unsigned holds_count(Client *c) {
        g_autoptr(sd_bus_message) objects = client_objects(c);
        const char *path = NULL;
        unsigned n = 0;

        while (objects_next(objects, &path)) {
                g_autofree char *state = object_read(objects, HOLD, "State");

                n += state && strcmp(state, "ended") != 0;
        }
        return n;
}

bool hold_names(Client *c, const char *path, pid_t pid) {
        g_autoptr(sd_bus_message) reply = client_get_variant(c, path, HOLD, "Obstacles", "a(us)");
        uint32_t is;

        bus_check(sd_bus_message_enter_container(reply, 'a', "(us)"), "Obstacles");
        while (sd_bus_message_read(reply, "(us)", &is, NULL) > 0)
                if ((pid_t) is == pid)
                        return true;
        return false;
}

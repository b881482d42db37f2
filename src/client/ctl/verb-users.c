/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>

#include "client/ctl/verbs.h"

/* users: every process that has perf events open. */

enum {
        USER_PID,
        USER_UID,
        USER_DESCRIPTORS,
        USER_UNIT,
        USER_COMMAND,
        _USER_MAX,
};

static const Column columns[_USER_MAX] = {
        [USER_PID] = { "PID", COLUMN_NUMBER },
        [USER_UID] = { "USER", COLUMN_USER },
        [USER_DESCRIPTORS] = { "DESCRIPTORS", COLUMN_NUMBER },
        [USER_UNIT] = { "UNIT", COLUMN_TEXT },
        [USER_COMMAND] = { "COMMAND", COLUMN_TEXT, .cut = true },
};

static const TableSpec spec = { "users", "No other process has perf events open.", columns,
                                _USER_MAX };

static int table_fill(Table *t, sd_bus_message *m) {
        uint32_t pid, uid, n;
        const char *command, *unit;
        int r = sd_bus_message_enter_container(m, 'a', "(uussu)");

        while (r >= 0 &&
               (r = sd_bus_message_read(m, "(uussu)", &pid, &uid, &command, &unit, &n)) > 0) {
                table_add_row(t);
                table_put_number(t, USER_PID, pid);
                table_put_number(t, USER_UID, uid);
                table_put_number(t, USER_DESCRIPTORS, n);
                table_put_text(t, USER_UNIT, unit);
                table_put_text(t, USER_COMMAND, command);
        }
        return MIN(r, 0);
}

int verb_users(Ctl *c, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        r = ctl_call_plain(c, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "ListUsers",
                           &reply, why);
        if (r == 0)
                r = table_new(c, &spec, &t);
        if (r == 0)
                r = table_fill(t, reply);
        return r == 0 ? table_print(t, stdout) : r;
}

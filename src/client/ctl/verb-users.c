/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>

#include "client/ctl/verbs.h"

/* users: every process that has perf events open. */

static const Column columns[] = {
        { "PID", COLUMN_NUMBER },
        { "USER", COLUMN_USER },
        { "DESCRIPTORS", COLUMN_NUMBER },
        { "UNIT", COLUMN_TEXT },
        { "COMMAND", COLUMN_TEXT, .cut = true },
};

static const TableSpec spec = { "users", "No other process has perf events open.", columns,
                                ELEMENTSOF(columns) };

int verb_users(Ctl *c, Refusal *why) {
        static const char *const members[] = { "PID", "USER", "COMMAND", "UNIT", "DESCRIPTORS" };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        r = ctl_call_method(c, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "ListUsers",
                            &reply, why, "");
        if (r == 0)
                r = table_new(c, &spec, &t);
        if (r == 0)
                r = table_add_array(t, reply, "uussu", members);
        return r == 0 ? table_print(t, stdout) : r;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>

#include "client/ctl/verbs.h"

/* events, encode: the names of events, and what they mean to the kernel. */

static const Column event_columns[] = {
        { "NAME", COLUMN_TEXT },
        { "PMU", COLUMN_TEXT },
        { "DESCRIPTION", COLUMN_TEXT, .cut = true },
};

static const TableSpec events_spec = { "events", "No such events.", event_columns,
                                       ELEMENTSOF(event_columns) };

int verb_events(Ctl *c, Refusal *why) {
        static const char *const members[] = { "NAME", "PMU", "DESCRIPTION" };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        r = ctl_call_method(c, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "ListEvents",
                            &reply, why, "s", c->n_words > 0 ? c->words[0] : "*");
        if (r == 0)
                r = table_new(c, &events_spec, &t);
        if (r == 0)
                r = table_add_array(t, reply, "sss", members);
        return r == 0 ? table_print(t, stdout) : r;
}

/* ---- encode ---- */

static const Column code_columns[] = {
        { "EVENT", COLUMN_TEXT },  { "TYPE", COLUMN_NUMBER }, { "CONFIG", COLUMN_HEX },
        { "CONFIG1", COLUMN_HEX }, { "CONFIG2", COLUMN_HEX },
};

static const TableSpec codes_spec = { "codes", NULL, code_columns, ELEMENTSOF(code_columns) };

static int encode(Ctl *c, Table *t, const char *event, Refusal *why) {
        static const char *const members[] = { "TYPE", "CONFIG", "CONFIG1", "CONFIG2" };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = ctl_call_method(c, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                                "EncodeEvent", &reply, why, "s", event);

        if (r != 0)
                return r;
        table_add_row(t);
        table_put_text(t, "EVENT", event);
        return table_put_members(t, reply, "uttt", members);
}

int verb_encode(Ctl *c, Refusal *why) {
        _cleanup_(table_freep) Table *t = NULL;
        int result, r;

        result = table_new(c, &codes_spec, &t);
        for (char **event = c->words; *event && ctl_may_go_on(result); event++)
                result = ctl_go_on(result, encode(c, t, *event, why), why);
        r = t ? table_print(t, stdout) : 0;
        return result ?: r;
}

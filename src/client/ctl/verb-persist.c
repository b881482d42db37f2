/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>
#include <stdio.h>

#include "client/ctl/readings.h"
#include "client/ctl/verbs.h"

/* persist, adopt: whether a counter outlives its connection. */

static const Column columns[] = {
        { "COUNTER", COLUMN_NUMBER },
        { "ID", COLUMN_TEXT },
};

static const TableSpec spec = { "persistent", NULL, columns, ELEMENTSOF(columns) };

static int persist(Ctl *c, Table *t, const char *word, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_free_ char *path = NULL;
        const char *id;
        int r;

        r = ctl_path("counter", word, &path, why);
        if (r == 0)
                r = ctl_call_method(c, path, PERFALLOC_COUNTER_INTERFACE, "Persist", &reply, why,
                                    "");
        if (r == 0)
                r = MIN(sd_bus_message_read(reply, "s", &id), 0);
        if (r != 0)
                return r;
        table_add_row(t);
        table_put_number(t, "COUNTER", path_number(path));
        table_put_text(t, "ID", id);
        return 0;
}

int verb_persist(Ctl *c, Refusal *why) {
        _cleanup_(table_freep) Table *t = NULL;
        int result, r;

        result = table_new(c, &spec, &t);
        for (char **word = c->words; *word && ctl_may_go_on(result); word++)
                result = ctl_go_on(result, persist(c, t, *word, why), why);
        r = t ? table_print(t, stdout) : 0;
        return result ?: r;
}

/* This may be the counter's last connection: reads it before closing. */
static int adopt(Ctl *c, Readings *readings, const char *word, Refusal *why) {
        int r = readings_add(readings, word, why);

        if (r == 0)
                r = ctl_call_method(c, readings->paths[readings->n - 1],
                                    PERFALLOC_COUNTER_INTERFACE, "Adopt", NULL, why, "");
        if (r != 0)
                readings_drop_last(readings);
        return r;
}

int verb_adopt(Ctl *c, Refusal *why) {
        _cleanup_(readings_done) Readings readings = READINGS_NULL;
        int result = 0, r = 0;

        for (char **word = c->words; *word && ctl_may_go_on(result); word++)
                result = ctl_go_on(result, adopt(c, &readings, *word, why), why);
        if (readings.n > 0 && ctl_may_go_on(result))
                r = readings_print(c, &readings, stdout, why);
        return result ?: r;
}

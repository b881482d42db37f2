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

static int events_fill(Table *t, sd_bus_message *m) {
        const char *texts[ELEMENTSOF(event_columns)];
        int r = sd_bus_message_enter_container(m, 'a', "(sss)");

        while (r >= 0 &&
               (r = sd_bus_message_read(m, "(sss)", &texts[0], &texts[1], &texts[2])) > 0) {
                table_add_row(t);
                for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                        table_put_text(t, i, texts[i]);
        }
        return MIN(r, 0);
}

int verb_events(Ctl *c, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        r = ctl_call_new(c, &m, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "ListEvents");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", c->n_words > 0 ? c->words[0] : "*");
        if (r >= 0)
                r = ctl_call(c, m, &reply, why);
        if (r == 0)
                r = table_new(c, &events_spec, &t);
        if (r == 0)
                r = events_fill(t, reply);
        return r == 0 ? table_print(t, stdout) : r;
}

/* ---- encode ---- */

enum {
        CODE_EVENT,
        CODE_TYPE,
        CODE_CONFIG,
        CODE_CONFIG1,
        CODE_CONFIG2,
        _CODE_MAX,
};

static const Column code_columns[_CODE_MAX] = {
        [CODE_EVENT] = { "EVENT", COLUMN_TEXT },    [CODE_TYPE] = { "TYPE", COLUMN_NUMBER },
        [CODE_CONFIG] = { "CONFIG", COLUMN_HEX },   [CODE_CONFIG1] = { "CONFIG1", COLUMN_HEX },
        [CODE_CONFIG2] = { "CONFIG2", COLUMN_HEX },
};

static const TableSpec codes_spec = { "codes", NULL, code_columns, _CODE_MAX };

static int encode(Ctl *c, Table *t, const char *event, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        uint64_t config, config1, config2;
        uint32_t type;
        int r;

        r = ctl_call_new(c, &m, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, "EncodeEvent");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", event);
        if (r >= 0)
                r = ctl_call(c, m, &reply, why);
        if (r == 0)
                r = MIN(sd_bus_message_read(reply, "uttt", &type, &config, &config1, &config2), 0);
        if (r != 0)
                return r;
        table_add_row(t);
        table_put_text(t, CODE_EVENT, event);
        table_put_number(t, CODE_TYPE, type);
        table_put_number(t, CODE_CONFIG, config);
        table_put_number(t, CODE_CONFIG1, config1);
        table_put_number(t, CODE_CONFIG2, config2);
        return 0;
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

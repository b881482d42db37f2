/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>

#include "client/ctl/verbs.h"

/* probe: how many counters are free now, measured. */

static const Column columns[] = {
        { "PMU", COLUMN_TEXT },
        { "CPU", COLUMN_NUMBER },
        { "FREE", COLUMN_NUMBER },
        { "COUNTERS", COLUMN_SOME },
};

static const TableSpec spec = { "probe", "No PMU here has counters that could be measured.",
                                columns, ELEMENTSOF(columns) };

/* The number of counters is measured with the first probe, so it is read afterwards. */
static int probe(Ctl *c, Table *t, const char *name, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(object_done) Object pmu = OBJECT_NULL;
        _cleanup_free_ char *path = NULL;
        uint32_t cpu, n_free;
        int r;

        r = sd_bus_path_encode(PERFALLOC_OBJECT_PATH "/pmu", name, &path);
        if (r < 0)
                return r;
        r = ctl_call_method(c, path, PERFALLOC_PMU_INTERFACE, "Probe", &reply, why, "");
        if (r == 0)
                r = ctl_fetch(c, path, PERFALLOC_PMU_INTERFACE, &pmu, why);
        if (r == 0)
                r = MIN(sd_bus_message_enter_container(reply, 'a', "(uu)"), 0);
        if (r != 0)
                return r;
        while ((r = sd_bus_message_read(reply, "(uu)", &cpu, &n_free)) > 0) {
                table_add_row(t);
                table_put_text(t, "PMU", name);
                table_put_number(t, "CPU", cpu);
                table_put_number(t, "FREE", n_free);
                table_put(t, "COUNTERS", object_value(&pmu, "Counters"));
        }
        return r;
}

/* No PMU is named: probes all that can be measured. */
static int probe_all(Ctl *c, Table *t, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        int r = ctl_fetch_all(c, &all, why);

        OBJECTS_FOREACH (pmu, &all, PERFALLOC_PMU_INTERFACE) {
                if (!object_is(pmu, "Kind", "core") && !object_is(pmu, "Kind", "breakpoint"))
                        continue;
                r = ctl_go_on(r, probe(c, t, object_text(pmu, "Name"), why), why);
                if (!ctl_may_go_on(r))
                        return r;
        }
        return r;
}

int verb_probe(Ctl *c, Refusal *why) {
        _cleanup_(table_freep) Table *t = NULL;
        int result, r;

        result = table_new(c, &spec, &t);
        if (result == 0 && c->n_words == 0)
                result = probe_all(c, t, why);
        else
                for (char **name = c->words; *name && ctl_may_go_on(result); name++)
                        result = ctl_go_on(result, probe(c, t, *name, why), why);
        r = t && (result == 0 || table_rows(t) > 0) ? table_print(t, stdout) : 0;
        return result ?: r;
}

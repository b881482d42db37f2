/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/perf_event.h>
#include <perfalloc/dbus.h>
#include <string.h>

#include "client/ctl/verbs.h"

/* monitors: yielders of all three kinds: monitor counters, registered monitors, bridges. */

static const Column columns[] = {
        { "KIND", COLUMN_TEXT, "" },
        { "NUMBER", COLUMN_NUMBER },
        { "NAME", COLUMN_TEXT, "Name", .cut = true },
        { "USER", COLUMN_USER, "Uid" },
        { "PID", COLUMN_NUMBER, "Pid", .drop = 2 },
        { "PMUS", COLUMN_TEXTS, "Pmus" },
        { "CPUS", COLUMN_TEXT, "Cpus", .drop = 1 },
        { "PRIORITY", COLUMN_NUMBER, "Priority", .drop = 3 },
        { "STATE", COLUMN_STATE, "State" },
};

static const TableSpec spec = { "monitors", "No monitors.", columns, ELEMENTSOF(columns) };

/* Generic events and raw ones are those of the core PMUs, whichever type these have. */
static bool is_generic(uint64_t type) {
        return type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE || type == PERF_TYPE_RAW;
}

static int put_pmus(Table *t, const Objects *all, uint64_t type) {
        _cleanup_(value_done) Value names = { .kind = VALUE_TEXTS };
        int r = 0;

        OBJECTS_FOREACH (pmu, all, PERFALLOC_PMU_INTERFACE)
                if (r == 0 && (object_number(pmu, "Type") == type ||
                               (is_generic(type) && object_is(pmu, "Kind", "core"))))
                        r = value_add_text(&names, object_text(pmu, "Name"));
        table_put(t, "PMUS", &names);
        return r;
}

static int add_counter(Table *t, const Objects *all, const Object *o) {
        const char *name = object_text(o, "Name"), *event = object_text(o, "Event");

        table_add_row(t);
        table_put_text(t, "KIND", "counter");
        table_put_number(t, "NUMBER", o->number);
        table_put_text(t, "NAME", *name ? name : event);
        table_put(t, "USER", object_value(o, "Uid"));
        table_put(t, "CPUS", object_value(o, "Cpus"));
        table_put(t, "STATE", object_value(o, "State"));
        return put_pmus(t, all, object_number(o, "Type"));
}

/* A bridge yields to every hold, and has no owner. */
static void add_bridge(Table *t, const char *name, bool yielding) {
        table_add_row(t);
        table_put_text(t, "KIND", "bridge");
        table_put_text(t, "NAME", name);
        table_put_text(t, "STATE", yielding ? "yielded" : "counting");
}

static const char *const bridges[] = { "pcp-lock", "likwid-lock", "nmi-watchdog" };

static void add_bridges(Table *t, const Object *manager) {
        char **features = object_value(manager, "Features")->texts;

        for (char **f = features; f && *f; f++)
                for (size_t i = 0; i < ELEMENTSOF(bridges); i++)
                        if (strcmp(*f, bridges[i]) == 0)
                                add_bridge(t, *f, object_number(manager, "Yielding") != 0);
}

int monitors_table(Ctl *c, const Objects *all, Table **ret, Refusal *why) {
        _cleanup_(object_done) Object manager = OBJECT_NULL;
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        r = ctl_fetch(c, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, &manager, why);
        if (r == 0)
                r = table_new(c, &spec, &t);
        if (r != 0)
                return r;
        OBJECTS_FOREACH (o, all, PERFALLOC_MONITOR_INTERFACE) {
                table_add_object(t, o);
                table_put_text(t, "KIND", "registered");
        }
        OBJECTS_FOREACH (o, all, PERFALLOC_COUNTER_INTERFACE)
                if (r == 0 && object_is(o, "Role", "monitor"))
                        r = add_counter(t, all, o);
        if (r < 0)
                return r;
        add_bridges(t, &manager);
        *ret = TAKE_PTR(t);
        return 0;
}

int verb_monitors(Ctl *c, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        r = ctl_fetch_all(c, &all, why);
        if (r == 0)
                r = monitors_table(c, &all, &t, why);
        return r == 0 ? table_print(t, stdout) : r;
}

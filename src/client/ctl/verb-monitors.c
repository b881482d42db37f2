/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>
#include <string.h>

#include "client/ctl/verbs.h"

/* monitors: yielders of all three kinds: monitor counters, registered monitors, bridges. */

enum {
        MONITOR_KIND,
        MONITOR_NUMBER,
        MONITOR_NAME,
        MONITOR_USER,
        MONITOR_PID,
        MONITOR_PMUS,
        MONITOR_CPUS,
        MONITOR_PRIORITY,
        MONITOR_STATE,
        _MONITOR_MAX,
};

static const Column columns[_MONITOR_MAX] = {
        [MONITOR_KIND] = { "KIND", COLUMN_TEXT },
        [MONITOR_NUMBER] = { "NUMBER", COLUMN_NUMBER },
        [MONITOR_NAME] = { "NAME", COLUMN_TEXT, .cut = true },
        [MONITOR_USER] = { "USER", COLUMN_USER },
        [MONITOR_PID] = { "PID", COLUMN_NUMBER },
        [MONITOR_PMUS] = { "PMUS", COLUMN_TEXTS },
        [MONITOR_CPUS] = { "CPUS", COLUMN_TEXT },
        [MONITOR_PRIORITY] = { "PRIORITY", COLUMN_NUMBER },
        [MONITOR_STATE] = { "STATE", COLUMN_STATE },
};

static const TableSpec spec = { "monitors", "No monitors.", columns, _MONITOR_MAX };

static void add_registered(Table *t, const Object *o) {
        table_add_row(t);
        table_put_text(t, MONITOR_KIND, "registered");
        table_put_number(t, MONITOR_NUMBER, o->number);
        table_put(t, MONITOR_NAME, object_value(o, "Name"));
        table_put(t, MONITOR_USER, object_value(o, "Uid"));
        table_put(t, MONITOR_PID, object_value(o, "Pid"));
        table_put(t, MONITOR_PMUS, object_value(o, "Pmus"));
        table_put(t, MONITOR_CPUS, object_value(o, "Cpus"));
        table_put(t, MONITOR_PRIORITY, object_value(o, "Priority"));
        table_put(t, MONITOR_STATE, object_value(o, "State"));
}

/* Finds the PMU by its type. */
static void put_pmu(Table *t, const Objects *all, uint64_t type) {
        OBJECTS_FOREACH(pmu, all, PERFALLOC_PMU_INTERFACE) {
                char *texts[] = { (char *) object_text(pmu, "Name"), NULL };

                if (object_number(pmu, "Type") == type) {
                        table_put(t, MONITOR_PMUS, &(Value){ .kind = VALUE_TEXTS, .texts = texts });
                        return;
                }
        }
        table_put_nothing(t, MONITOR_PMUS);
}

static void add_counter(Table *t, const Objects *all, const Object *o) {
        const char *name = object_text(o, "Name"), *event = object_text(o, "Event");

        table_add_row(t);
        table_put_text(t, MONITOR_KIND, "counter");
        table_put_number(t, MONITOR_NUMBER, o->number);
        table_put_text(t, MONITOR_NAME, *name ? name : event);
        table_put(t, MONITOR_USER, object_value(o, "Uid"));
        table_put_nothing(t, MONITOR_PID);
        put_pmu(t, all, object_number(o, "Type"));
        table_put(t, MONITOR_CPUS, object_value(o, "Cpus"));
        table_put_nothing(t, MONITOR_PRIORITY);
        table_put(t, MONITOR_STATE, object_value(o, "State"));
}

/* A bridge yields to every hold, and has no owner. */
static void add_bridge(Table *t, const char *name, bool yielding) {
        table_add_row(t);
        table_put_text(t, MONITOR_KIND, "bridge");
        for (size_t i = MONITOR_NUMBER; i < MONITOR_STATE; i++)
                table_put_nothing(t, i);
        table_put_text(t, MONITOR_NAME, name);
        table_put_text(t, MONITOR_STATE, yielding ? "yielded" : "counting");
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

        r = object_fetch(c, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE, &manager, why);
        if (r == 0)
                r = table_new(c, &spec, &t);
        if (r != 0)
                return r;
        OBJECTS_FOREACH(o, all, PERFALLOC_MONITOR_INTERFACE)
        add_registered(t, o);
        OBJECTS_FOREACH(o, all, PERFALLOC_COUNTER_INTERFACE)
        if (object_is(o, "Role", "monitor"))
                add_counter(t, all, o);
        add_bridges(t, &manager);
        *ret = TAKE_PTR(t);
        return 0;
}

int verb_monitors(Ctl *c, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        r = objects_fetch(c, &all, why);
        if (r == 0)
                r = monitors_table(c, &all, &t, why);
        return r == 0 ? table_print(t, stdout) : r;
}

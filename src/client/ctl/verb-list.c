/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>
#include <string.h>

#include "client/ctl/verbs.h"

/* holds, counters, samplers, pmus: all objects of an interface. */

static const Column hold_columns[] = {
        { "HOLD", COLUMN_NUMBER },
        { "STATE", COLUMN_STATE, "State" },
        { "CONFIRMED", COLUMN_BOOL, "Confirmed", .drop = 3 },
        { "RESULT", COLUMN_TEXT, "Result", .drop = 1 },
        { "MODE", COLUMN_TEXT, "Mode", .drop = 6 },
        { "USER", COLUMN_USER, "Uid" },
        { "PID", COLUMN_NUMBER, "Pid", .drop = 5 },
        { "COUNTERS", COLUMN_ALL, "Counters", .drop = 2 },
        { "PMUS", COLUMN_TEXTS, "Pmus" },
        { "CPUS", COLUMN_TEXT, "Cpus" },
        { "ASKED", COLUMN_SINCE, "RequestTimestamp", .detail = true },
        { "GRANTED", COLUMN_SINCE, "GrantTimestamp" },
        { "EXPIRES", COLUMN_UNTIL, "ExpireTimestamp", .drop = 4 },
        { "LATENCY", COLUMN_SPAN, "LatencyUSec", .detail = true },
        { "UNATTENDED", COLUMN_BOOL, "Unattended", .detail = true },
        { "QUEUE", COLUMN_SOME, "QueuePosition", .drop = 7 },
        { "REASON", COLUMN_TEXT, "Reason", .cut = true },
        { "OBSTACLES", COLUMN_TEXTS, "Obstacles", .detail = true },
};

const TableSpec holds_spec = { "holds", "No holds.", hold_columns, ELEMENTSOF(hold_columns) };

static const Column counter_columns[] = {
        { "COUNTER", COLUMN_NUMBER },
        { "EVENT", COLUMN_TEXT, "Event" },
        { "TYPE", COLUMN_NUMBER, "Type", .detail = true },
        { "CONFIG", COLUMN_HEX, "Config", .detail = true },
        { "SCOPE", COLUMN_TEXT, "Scope" },
        { "TARGETS", COLUMN_NUMBERS, "Targets", .cut = true, .drop = 1 },
        { "CPUS", COLUMN_TEXT, "Cpus", .drop = 4 },
        { "ROLE", COLUMN_TEXT, "Role", .drop = 5 },
        { "USER", COLUMN_USER, "Uid" },
        { "STATE", COLUMN_STATE, "State" },
        { "QUALITY", COLUMN_STATE, "Quality", .drop = 3 },
        { "SCALE", COLUMN_REAL, "Scale", .detail = true },
        { "UNIT", COLUMN_TEXT, "Unit", .rare = true },
        { "PERSISTENT", COLUMN_BOOL, "Persistent", .drop = 7 },
        { "ID", COLUMN_TEXT, "Id", .drop = 6 },
        { "NAME", COLUMN_TEXT, "Name", .cut = true, .drop = 2 },
};

static const Column sampler_columns[] = {
        { "SAMPLER", COLUMN_NUMBER },
        { "INTERVAL", COLUMN_SPAN, "IntervalUSec" },
        { "START", COLUMN_SPAN, "StartUSec" },
        { "COUNTERS", COLUMN_PATHS, "Counters", .cut = true },
        { "TICKS", COLUMN_COUNT, "Ticks" },
        { "MISSED", COLUMN_COUNT, "Missed" },
        { "BLOCKED", COLUMN_BOOL, "Blocked" },
};

static const Column pmu_columns[] = {
        { "NAME", COLUMN_TEXT, "Name" },         { "TYPE", COLUMN_NUMBER, "Type" },
        { "KIND", COLUMN_TEXT, "Kind" },         { "CPUS", COLUMN_TEXT, "Cpus" },
        { "COUNTERS", COLUMN_SOME, "Counters" }, { "FIXED", COLUMN_TEXTS, "Fixed" },
        { "KERNEL", COLUMN_TEXTS, "Kernel" },    { "PROBED", COLUMN_TEXTS, "Probed" },
};

static const TableSpec counters_spec = { "counters", "No counters.", counter_columns,
                                         ELEMENTSOF(counter_columns) };
static const TableSpec samplers_spec = { "samplers", "No samplers.", sampler_columns,
                                         ELEMENTSOF(sampler_columns) };
static const TableSpec pmus_spec = { "pmus", "No PMUs.", pmu_columns, ELEMENTSOF(pmu_columns) };

static const struct {
        const TableSpec *spec; /* its name is the verb */
        const char *interface;
} lists[] = {
        { &holds_spec, PERFALLOC_HOLD_INTERFACE },
        { &counters_spec, PERFALLOC_COUNTER_INTERFACE },
        { &samplers_spec, PERFALLOC_SAMPLER_INTERFACE },
        { &pmus_spec, PERFALLOC_PMU_INTERFACE },
};

static bool is_listed(const Ctl *c, const Object *o) {
        return c->options->all || strcmp(o->interface, PERFALLOC_HOLD_INTERFACE) != 0 ||
               !object_is(o, "State", "ended");
}

static void add_object(Table *t, const Object *o) {
        table_add_object(t, o);
        /* it will not expire any more */
        if (object_is(o, "State", "ended"))
                table_put_number(t, "EXPIRES", 0);
}

int verb_list(Ctl *c, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        _cleanup_(table_freep) Table *t = NULL;
        size_t i = 0;
        int r;

        while (strcmp(lists[i].spec->name, c->verb) != 0)
                i++;
        r = ctl_fetch_all(c, &all, why);
        if (r == 0)
                r = table_new(c, lists[i].spec, &t);
        if (r != 0)
                return r;
        OBJECTS_FOREACH (o, &all, lists[i].interface)
                if (is_listed(c, o))
                        add_object(t, o);
        return table_print(t, stdout);
}

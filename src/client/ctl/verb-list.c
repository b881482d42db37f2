/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>
#include <string.h>

#include "client/ctl/verbs.h"

/* holds, counters, samplers, pmus: all objects of an interface. */

static const Column hold_columns[] = {
        { "HOLD", COLUMN_NUMBER },
        { "STATE", COLUMN_STATE, "State" },
        { "CONFIRMED", COLUMN_BOOL, "Confirmed" },
        { "RESULT", COLUMN_TEXT, "Result" },
        { "MODE", COLUMN_TEXT, "Mode" },
        { "USER", COLUMN_USER, "Uid" },
        { "PID", COLUMN_NUMBER, "Pid" },
        { "COUNTERS", COLUMN_ALL, "Counters" },
        { "PMUS", COLUMN_TEXTS, "Pmus" },
        { "CPUS", COLUMN_TEXT, "Cpus" },
        { "ASKED", COLUMN_SINCE, "RequestTimestamp", .detail = true },
        { "GRANTED", COLUMN_SINCE, "GrantTimestamp" },
        { "EXPIRES", COLUMN_UNTIL, "ExpireTimestamp" },
        { "LATENCY", COLUMN_SPAN, "LatencyUSec", .detail = true },
        { "UNATTENDED", COLUMN_BOOL, "Unattended", .detail = true },
        { "QUEUE", COLUMN_SOME, "QueuePosition" },
        { "TAG", COLUMN_TEXT, "Tag" },
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
        { "TARGETS", COLUMN_NUMBERS, "Targets", .cut = true },
        { "CPUS", COLUMN_TEXT, "Cpus" },
        { "ROLE", COLUMN_TEXT, "Role" },
        { "USER", COLUMN_USER, "Uid" },
        { "STATE", COLUMN_STATE, "State" },
        { "QUALITY", COLUMN_STATE, "Quality" },
        { "PERSISTENT", COLUMN_BOOL, "Persistent" },
        { "ID", COLUMN_TEXT, "Id" },
        { "NAME", COLUMN_TEXT, "Name", .cut = true },
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
                table_add_object(t, o);
        return table_print(t, stdout);
}

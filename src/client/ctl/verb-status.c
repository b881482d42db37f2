/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <perfalloc/dbus.h>
#include <stdio.h>

#include "client/ctl/verbs.h"
#include "client/hold-words.h"

/* status: one screen. Whether the counters are free; who has them, since when and why; who waits,
 * and for whom; what has yielded; what each PMU has. */

/* ---- who has them ---- */

static const Column granted_columns[] = {
        { "HOLD", COLUMN_NUMBER },
        { "STATE", COLUMN_STATE, "State" },
        { "CONFIRMED", COLUMN_BOOL, "Confirmed" },
        { "USER", COLUMN_USER, "Uid" },
        { "PID", COLUMN_NUMBER, "Pid" },
        { "SINCE", COLUMN_SINCE, "GrantTimestamp" },
        { "EXPIRES", COLUMN_UNTIL, "ExpireTimestamp" },
        { "MODE", COLUMN_TEXT, "Mode" },
        { "SCOPE", COLUMN_TEXT, .words = hold_words_scope },
        { "TAG", COLUMN_TEXT, "Tag" },
        { "REASON", COLUMN_TEXT, "Reason", .cut = true },
        { "OBSTACLES", COLUMN_TEXTS, "Obstacles", .cut = true },
};

static const TableSpec granted_spec = { "holds", NULL, granted_columns,
                                        ELEMENTSOF(granted_columns) };

static int granted_make(Ctl *c, const Objects *all, Table **ret, Refusal *why) {
        int r = table_new(c, &granted_spec, ret);

        if (r < 0)
                return r;
        OBJECTS_FOREACH (o, all, PERFALLOC_HOLD_INTERFACE)
                if (!object_is(o, "State", "queued") && !object_is(o, "State", "ended"))
                        table_add_object(*ret, o);
        return 0;
}

/* ---- who waits ---- */

static const Column waiting_columns[] = {
        { "HOLD", COLUMN_NUMBER },        { "PLACE", COLUMN_NUMBER, "QueuePosition" },
        { "BEHIND", COLUMN_NUMBERS, "" }, { "USER", COLUMN_USER, "Uid" },
        { "PID", COLUMN_NUMBER, "Pid" },  { "SINCE", COLUMN_SINCE, "RequestTimestamp" },
        { "MODE", COLUMN_TEXT, "Mode" },  { "SCOPE", COLUMN_TEXT, .words = hold_words_scope },
        { "TAG", COLUMN_TEXT, "Tag" },    { "REASON", COLUMN_TEXT, "Reason", .cut = true },
};

static const TableSpec waiting_spec = { "waiting", NULL, waiting_columns,
                                        ELEMENTSOF(waiting_columns) };

static int put_behind(Table *t, const Objects *all, const Object *waiting) {
        _cleanup_(value_done) Value behind = { .kind = VALUE_NUMBERS };
        int r = 0;

        OBJECTS_FOREACH (o, all, PERFALLOC_HOLD_INTERFACE)
                if (r == 0 && hold_precedes(o, waiting))
                        r = value_add_number(&behind, o->number);
        table_put(t, "BEHIND", &behind);
        return r;
}

static int waiting_make(Ctl *c, const Objects *all, Table **ret, Refusal *why) {
        int r = table_new(c, &waiting_spec, ret);

        OBJECTS_FOREACH (o, all, PERFALLOC_HOLD_INTERFACE) {
                if (r < 0 || !object_is(o, "State", "queued"))
                        continue;
                table_add_object(*ret, o);
                r = put_behind(*ret, all, o);
        }
        return r;
}

/* ---- what there is ---- */

static const Column pmu_columns[] = {
        { "NAME", COLUMN_TEXT, "Name" },    { "KIND", COLUMN_TEXT, "Kind" },
        { "CPUS", COLUMN_TEXT, "Cpus" },    { "COUNTERS", COLUMN_SOME, "Counters" },
        { "FIXED", COLUMN_TEXTS, "Fixed" }, { "KERNEL", COLUMN_TEXTS, "Kernel" },
        { "HOLDS", COLUMN_NUMBERS, "" },
};

static const TableSpec pmus_spec = { "pmus", NULL, pmu_columns, ELEMENTSOF(pmu_columns) };

/* Software PMUs have no limited counters, and there may be a hundred uncore ones. */
static bool pmu_matters(const Object *pmu) {
        return object_is(pmu, "Kind", "core") || object_is(pmu, "Kind", "breakpoint") ||
               object_number(pmu, "Counters") > 0;
}

static bool keeps(const Object *hold, const Object *pmu) {
        if (object_is(hold, "State", "queued") || object_is(hold, "State", "ended"))
                return false;
        for (char **name = object_value(hold, "Pmus")->texts; name && *name; name++)
                if (object_is(pmu, "Name", *name))
                        return true;
        return false;
}

static int put_keepers(Table *t, const Objects *all, const Object *pmu) {
        _cleanup_(value_done) Value keepers = { .kind = VALUE_NUMBERS };
        int r = 0;

        OBJECTS_FOREACH (o, all, PERFALLOC_HOLD_INTERFACE)
                if (r == 0 && keeps(o, pmu))
                        r = value_add_number(&keepers, o->number);
        table_put(t, "HOLDS", &keepers);
        return r;
}

static int pmus_make(Ctl *c, const Objects *all, Table **ret, Refusal *why) {
        int r = table_new(c, &pmus_spec, ret);

        OBJECTS_FOREACH (pmu, all, PERFALLOC_PMU_INTERFACE) {
                if (r < 0 || !pmu_matters(pmu))
                        continue;
                table_add_object(*ret, pmu);
                r = put_keepers(*ret, all, pmu);
        }
        return r;
}

/* ---- all of it ---- */

/* The parts of the screen. */
static const struct {
        const char *heading;
        int (*make)(Ctl *c, const Objects *all, Table **ret, Refusal *why);
} sections[] = {
        { "Holds", granted_make },
        { "Waiting", waiting_make },
        { "Monitors", monitors_table },
        { "PMUs", pmus_make },
};

typedef struct Tables {
        Table *of[ELEMENTSOF(sections)];
} Tables;

static void tables_done(Tables *t) {
        for (size_t i = 0; i < ELEMENTSOF(sections); i++)
                table_free(t->of[i]);
}

static size_t count(const Objects *all, const char *interface, const char *property,
                    const char *text) {
        size_t n = 0;

        OBJECTS_FOREACH (o, all, interface)
                n += object_is(o, property, text);
        return n;
}

static void print_headline(const Objects *all) {
        size_t n_granted = count(all, PERFALLOC_HOLD_INTERFACE, "State", "granted");
        size_t n_yielding = count(all, PERFALLOC_HOLD_INTERFACE, "State", "yielding");
        size_t n_waiting = count(all, PERFALLOC_HOLD_INTERFACE, "State", "queued");

        if (n_granted > 0)
                printf("The counters are held by %zu hold%s", n_granted, n_granted > 1 ? "s" : "");
        else if (n_yielding > 0)
                printf("Monitors are giving way to %zu hold%s", n_yielding,
                       n_yielding > 1 ? "s" : "");
        else
                printf("The counters are free: nobody holds them");
        if (n_waiting > 0)
                printf("; %zu wait%s in the queue", n_waiting, n_waiting > 1 ? "" : "s");
        printf(".\n");
        if (count(all, PERFALLOC_PMU_INTERFACE, "Kind", "core") == 0)
                printf("This machine has no core PMU; what can be held are other PMUs' "
                       "counters.\n");
}

static int status_print(const Objects *all, const Tables *tables) {
        int r = 0;

        print_headline(all);
        for (size_t i = 0; i < ELEMENTSOF(sections) && r == 0; i++) {
                if (table_rows(tables->of[i]) == 0)
                        continue;
                printf("\n%s\n", sections[i].heading);
                r = table_print(tables->of[i], stdout);
        }
        return r;
}

int verb_status(Ctl *c, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        _cleanup_(tables_done) Tables tables = {};
        int r = ctl_fetch_all(c, &all, why);

        for (size_t i = 0; i < ELEMENTSOF(sections) && r == 0; i++)
                r = sections[i].make(c, &all, &tables.of[i], why);
        if (r != 0)
                return r;
        return c->options->json ? tables_print_json(tables.of, ELEMENTSOF(sections), stdout)
                                : status_print(&all, &tables);
}

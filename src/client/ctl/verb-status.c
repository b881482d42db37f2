/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>

#include "client/ctl/verbs.h"
#include "client/hold-words.h"

/* status: one screen. Whether the counters are free; who has them, since when and why; who waits,
 * and for whom; what has yielded; what each PMU has. */

#define INTERVAL_USEC USEC_PER_SEC
#define CHANGE_USEC   (50 * USEC_PER_MSEC) /* for signals that come together */

/* Processes are those of this machine only if the service is. */
static void put_command(const Ctl *c, Table *t, const Object *o) {
        char command[COMMAND_NAME_MAX];

        if (ctl_is_local(c))
                table_put_text(t, "COMMAND", hold_words_command(o, command));
}

/* ---- who has them ---- */

static const Column granted_columns[] = {
        { "HOLD", COLUMN_NUMBER },
        { "STATE", COLUMN_STATE, "State" },
        { "CONFIRMED", COLUMN_BOOL, "Confirmed", .drop = 4 },
        { "USER", COLUMN_USER, "Uid" },
        { "PID", COLUMN_NUMBER, "Pid", .drop = 6 },
        { "COMMAND", COLUMN_TEXT, "", .drop = 3, .cut = true },
        { "SINCE", COLUMN_SINCE, "GrantTimestamp" },
        { "EXPIRES", COLUMN_UNTIL, "ExpireTimestamp", .drop = 5 },
        { "MODE", COLUMN_TEXT, "Mode", .drop = 7 },
        { "SCOPE", COLUMN_TEXT, .words = hold_words_scope, .detail = true },
        { "COUNTERS", COLUMN_ALL, "Counters", .drop = 2 },
        { "PMUS", COLUMN_TEXTS, "Pmus" },
        { "CPUS", COLUMN_TEXT, "Cpus", .drop = 1 },
        { "TAG", COLUMN_TEXT, "Tag", .cut = true, .drop = 8 },
        { "REASON", COLUMN_TEXT, "Reason", .cut = true },
        { "OBSTACLES", COLUMN_TEXTS, "Obstacles", .detail = true },
};

static const TableSpec granted_spec = { "holds", NULL, granted_columns,
                                        ELEMENTSOF(granted_columns) };

static bool is_served(const Object *hold) {
        return !object_is(hold, "State", "queued") && !object_is(hold, "State", "ended");
}

static int granted_make(Ctl *c, const Objects *all, Table **ret, Refusal *why) {
        int r = table_new(c, &granted_spec, ret);

        if (r < 0)
                return r;
        OBJECTS_FOREACH (o, all, PERFALLOC_HOLD_INTERFACE)
                if (is_served(o)) {
                        table_add_object(*ret, o);
                        put_command(c, *ret, o);
                }
        return 0;
}

/* Who is in the way has a line of its own: a column would be too wide. */
static void obstacles_print(const Objects *all) {
        OBJECTS_FOREACH (o, all, PERFALLOC_HOLD_INTERFACE) {
                _cleanup_free_ char *who = hold_words_obstacles(o);

                if (!is_served(o) || !who || !*who)
                        continue;
                printf(object_is(o, "State", "yielding")
                               ? "Hold %" PRIu64 " waits for: %s\n"
                               : "Hold %" PRIu64 " is not confirmed; counters in use by: %s\n",
                       o->number, who);
        }
}

/* ---- who waits ---- */

static const Column waiting_columns[] = {
        { "HOLD", COLUMN_NUMBER },
        { "PLACE", COLUMN_NUMBER, "QueuePosition" },
        { "BEHIND", COLUMN_NUMBERS, "" },
        { "USER", COLUMN_USER, "Uid" },
        { "PID", COLUMN_NUMBER, "Pid", .drop = 6 },
        { "COMMAND", COLUMN_TEXT, "", .drop = 3, .cut = true },
        { "SINCE", COLUMN_SINCE, "RequestTimestamp" },
        { "UNTIL", COLUMN_UNTIL, "WaitTimestamp", .drop = 4 },
        { "MODE", COLUMN_TEXT, "Mode", .drop = 7 },
        { "SCOPE", COLUMN_TEXT, .words = hold_words_scope, .detail = true },
        { "COUNTERS", COLUMN_ALL, "Counters", .drop = 5 },
        { "PMUS", COLUMN_TEXTS, "Pmus", .drop = 1 },
        { "CPUS", COLUMN_TEXT, "Cpus", .drop = 2 },
        { "TAG", COLUMN_TEXT, "Tag", .cut = true, .drop = 8 },
        { "REASON", COLUMN_TEXT, "Reason", .cut = true },
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
                put_command(c, *ret, o);
                r = put_behind(*ret, all, o);
        }
        return r;
}

/* ---- what there is ---- */

static const Column pmu_columns[] = {
        { "NAME", COLUMN_TEXT, "Name" },
        { "KIND", COLUMN_TEXT, "Kind" },
        { "CPUS", COLUMN_TEXT, "Cpus" },
        { "COUNTERS", COLUMN_SOME, "Counters" },
        { "FIXED", COLUMN_TEXTS, "Fixed", .cut = true, .drop = 2 },
        { "KERNEL", COLUMN_TEXTS, "Kernel", .cut = true, .drop = 1 },
        { "HOLDS", COLUMN_NUMBERS, "" },
};

static const TableSpec pmus_spec = { "pmus", NULL, pmu_columns, ELEMENTSOF(pmu_columns) };

/* Software PMUs have no limited counters, and there may be a hundred uncore ones. */
static bool pmu_matters(const Object *pmu) {
        return object_is(pmu, "Kind", "core") || object_is(pmu, "Kind", "breakpoint") ||
               object_number(pmu, "Counters") > 0;
}

static bool keeps(const Object *hold, const Object *pmu) {
        if (!is_served(hold))
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
                printf("Monitors are yielding to %zu hold%s", n_yielding,
                       n_yielding > 1 ? "s" : "");
        else
                printf("The counters are not held");
        if (n_waiting > 0)
                printf("; %zu wait%s in the queue", n_waiting, n_waiting > 1 ? "" : "s");
        printf(".\n");
        if (count(all, PERFALLOC_PMU_INTERFACE, "Kind", "core") == 0)
                printf("This machine has no core PMU; counters of other PMUs can be held.\n");
}

static int status_print(const Objects *all, const Tables *tables) {
        int r = 0;

        print_headline(all);
        for (size_t i = 0; i < ELEMENTSOF(sections) && r == 0; i++) {
                if (table_rows(tables->of[i]) == 0)
                        continue;
                printf("\n%s\n", sections[i].heading);
                r = table_print(tables->of[i], stdout);
                if (sections[i].make == granted_make)
                        obstacles_print(all);
        }
        return r;
}

static int status(Ctl *c, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        _cleanup_(tables_done) Tables tables = {};
        int r = ctl_fetch_all(c, &all, why);

        for (size_t i = 0; i < ELEMENTSOF(sections) && r == 0; i++)
                r = sections[i].make(c, &all, &tables.of[i], why);
        if (r != 0)
                return r;
        if (c->options->watch && c->terminal)
                printf("\033[H\033[J");
        return c->options->json ? tables_print_json(tables.of, ELEMENTSOF(sections), stdout)
                                : status_print(&all, &tables);
}

/* ---- again and again ---- */

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        *(bool *) userdata = true;
        return 0;
}

/* Until the next look, which a signal of the service brings forward. */
static int status_wait(Ctl *c, sd_event_source *timer, bool *due) {
        uint64_t interval = c->options->interval_usec ?: INTERVAL_USEC;
        int r;

        *due = false;
        r = sd_event_source_set_time_relative(timer, interval);
        if (r >= 0)
                r = sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
        return r < 0 ? r : ctl_run(c, due);
}

static int on_change(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        sd_event_source *timer = userdata;

        (void) sd_event_source_set_time_relative(timer, CHANGE_USEC);
        return 0;
}

static int status_watch(Ctl *c, Refusal *why) {
        _cleanup_(sd_event_source_unrefp) sd_event_source *timer = NULL;
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *changes = NULL;
        bool due = false;
        int r = ctl_watch_signals(c);

        if (r == 0)
                r = sd_event_add_time_relative(c->event, &timer, CLOCK_MONOTONIC, 0, 0, on_time,
                                               &due);
        if (r >= 0)
                r = sd_bus_match_signal(c->bus, &changes, PERFALLOC_BUS_NAME, NULL, NULL, NULL,
                                        on_change, timer);
        for (uint32_t n = 1; r >= 0; n++) {
                r = status(c, why);
                if (r == 0 && fflush(stdout) != 0) { /* who has read enough closes the pipe */
                        r = errno == EPIPE ? 0 : ctl_refuse_unwritten(errno, why);
                        break;
                }
                if (r != 0 || n == c->options->count)
                        break;
                r = status_wait(c, timer, &due);
                if (r != 0)
                        break;
                if (!c->terminal && !c->options->json)
                        printf("\n");
        }
        /* the usual end */
        return r == CTL_E_INTERRUPTED ? 0 : r;
}

int verb_status(Ctl *c, Refusal *why) {
        return c->options->watch ? status_watch(c, why) : status(c, why);
}

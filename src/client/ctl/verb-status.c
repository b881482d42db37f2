/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/verbs.h"
#include "client/hold-view.h"

/* status: one screen. Whether the counters are free; who has them, since when and why; who waits,
 * and for whom; what has yielded; what each PMU has. */

typedef struct Status {
        Ctl *c;
        Objects all;
        HoldView *views; /* of the holds, in order; their pointers are all's */
        const Object **holds;
        size_t n_holds;
        Table *granted, *waiting, *monitors, *pmus;
        size_t n_granted, n_waiting, n_yielding;
} Status;

static void status_done(Status *s) {
        table_free(s->granted);
        table_free(s->waiting);
        table_free(s->monitors);
        table_free(s->pmus);
        free(s->views);
        free(s->holds);
        objects_done(&s->all);
}

/* Holds are described as perfalloc(1) does. */
static HoldView view_of(const Object *o) {
        return (HoldView){
                .id = o->number,
                .uid = (uint32_t) object_number(o, "Uid"),
                .pid = (uint32_t) object_number(o, "Pid"),
                .counters = (uint32_t) object_number(o, "Counters"),
                .queue_position = (uint32_t) object_number(o, "QueuePosition"),
                .state = (char *) object_text(o, "State"),
                .mode = (char *) object_text(o, "Mode"),
                .cpus = (char *) object_text(o, "Cpus"),
                .pmus = object_value(o, "Pmus")->texts,
        };
}

static int views_make(Status *s) {
        size_t n = objects_count(&s->all, PERFALLOC_HOLD_INTERFACE);

        s->views = calloc(n + 1, sizeof(HoldView));
        s->holds = calloc(n + 1, sizeof(Object *));
        if (!s->views || !s->holds)
                return -ENOMEM;
        OBJECTS_FOREACH(o, &s->all, PERFALLOC_HOLD_INTERFACE) {
                if (object_is(o, "State", "ended"))
                        continue;
                s->holds[s->n_holds] = o;
                s->views[s->n_holds++] = view_of(o);
                s->n_granted += object_is(o, "State", "granted");
                s->n_waiting += object_is(o, "State", "queued");
                s->n_yielding += object_is(o, "State", "yielding");
        }
        return 0;
}

/* ---- who has them ---- */

enum {
        GRANTED_HOLD,
        GRANTED_STATE,
        GRANTED_CONFIRMED,
        GRANTED_USER,
        GRANTED_PID,
        GRANTED_SINCE,
        GRANTED_EXPIRES,
        GRANTED_MODE,
        GRANTED_SCOPE,
        GRANTED_REASON,
        GRANTED_OBSTACLES,
        _GRANTED_MAX,
};

static const Column granted_columns[_GRANTED_MAX] = {
        [GRANTED_HOLD] = { "HOLD", COLUMN_NUMBER },
        [GRANTED_STATE] = { "STATE", COLUMN_STATE, "State" },
        [GRANTED_CONFIRMED] = { "CONFIRMED", COLUMN_BOOL, "Confirmed" },
        [GRANTED_USER] = { "USER", COLUMN_USER, "Uid" },
        [GRANTED_PID] = { "PID", COLUMN_NUMBER, "Pid" },
        [GRANTED_SINCE] = { "SINCE", COLUMN_SINCE, "GrantTimestamp" },
        [GRANTED_EXPIRES] = { "EXPIRES", COLUMN_UNTIL, "ExpireTimestamp" },
        [GRANTED_MODE] = { "MODE", COLUMN_TEXT, "Mode" },
        [GRANTED_SCOPE] = { "SCOPE", COLUMN_TEXT, "Cpus" },
        [GRANTED_REASON] = { "REASON", COLUMN_TEXT, "Reason", true },
        [GRANTED_OBSTACLES] = { "OBSTACLES", COLUMN_TEXTS, "Obstacles", true },
};

static const TableSpec granted_spec = { "holds", NULL, granted_columns, _GRANTED_MAX };

static int granted_fill(Status *s) {
        int r = table_new(s->c, &granted_spec, &s->granted);

        for (size_t i = 0; i < s->n_holds && r == 0; i++) {
                _cleanup_free_ char *scope = NULL;

                if (object_is(s->holds[i], "State", "queued"))
                        continue;
                scope = hold_view_scope(&s->views[i]);
                if (!scope)
                        return -ENOMEM;
                table_add_object(s->granted, s->holds[i]);
                table_put_text(s->granted, GRANTED_SCOPE, scope);
        }
        return r;
}

/* ---- who waits ---- */

enum {
        WAITING_HOLD,
        WAITING_PLACE,
        WAITING_BEHIND,
        WAITING_USER,
        WAITING_PID,
        WAITING_SINCE,
        WAITING_MODE,
        WAITING_SCOPE,
        WAITING_REASON,
        _WAITING_MAX,
};

static const Column waiting_columns[_WAITING_MAX] = {
        [WAITING_HOLD] = { "HOLD", COLUMN_NUMBER },
        [WAITING_PLACE] = { "PLACE", COLUMN_NUMBER, "QueuePosition" },
        [WAITING_BEHIND] = { "BEHIND", COLUMN_NUMBERS, "" },
        [WAITING_USER] = { "USER", COLUMN_USER, "Uid" },
        [WAITING_PID] = { "PID", COLUMN_NUMBER, "Pid" },
        [WAITING_SINCE] = { "SINCE", COLUMN_SINCE, "RequestTimestamp" },
        [WAITING_MODE] = { "MODE", COLUMN_TEXT, "Mode" },
        [WAITING_SCOPE] = { "SCOPE", COLUMN_TEXT, "Cpus" },
        [WAITING_REASON] = { "REASON", COLUMN_TEXT, "Reason", true },
};

static const TableSpec waiting_spec = { "waiting", NULL, waiting_columns, _WAITING_MAX };

/* Puts the numbers of holds that have pmu (NULL: any), and that precede a hold (NULL: any). */
static int put_holds(const Status *s, Table *t, size_t column, const HoldView *before,
                     const char *pmu) {
        char(*numbers)[24] = calloc(s->n_holds + 1, sizeof(*numbers));
        char **texts = calloc(s->n_holds + 1, sizeof(char *));
        size_t n = 0;

        for (size_t i = 0; numbers && texts && i < s->n_holds; i++) {
                const HoldView *v = &s->views[i];
                bool has = !pmu;

                for (char **p = v->pmus; pmu && p && *p; p++)
                        has |= strcmp(*p, pmu) == 0;
                if (!has || (before ? !hold_view_precedes(v, before) : hold_view_is(v, "queued")))
                        continue;
                (void) snprintf(numbers[n], sizeof(numbers[n]), "%" PRIu64, v->id);
                texts[n] = numbers[n];
                n++;
        }
        if (numbers && texts)
                table_put(t, column, &(Value){ .kind = VALUE_NUMBERS, .texts = texts });
        n = numbers && texts;
        free(numbers);
        free(texts);
        return n ? 0 : -ENOMEM;
}

static int waiting_fill(Status *s) {
        int r = table_new(s->c, &waiting_spec, &s->waiting);

        for (size_t i = 0; i < s->n_holds && r == 0; i++) {
                _cleanup_free_ char *scope = NULL;

                if (!object_is(s->holds[i], "State", "queued"))
                        continue;
                scope = hold_view_scope(&s->views[i]);
                if (!scope)
                        return -ENOMEM;
                table_add_object(s->waiting, s->holds[i]);
                table_put_text(s->waiting, WAITING_SCOPE, scope);
                r = put_holds(s, s->waiting, WAITING_BEHIND, &s->views[i], NULL);
        }
        return r;
}

/* ---- what there is ---- */

enum {
        PMU_NAME,
        PMU_KIND,
        PMU_CPUS,
        PMU_COUNTERS,
        PMU_FIXED,
        PMU_KERNEL,
        PMU_HOLDS,
        _PMU_MAX,
};

static const Column pmu_columns[_PMU_MAX] = {
        [PMU_NAME] = { "NAME", COLUMN_TEXT, "Name" },
        [PMU_KIND] = { "KIND", COLUMN_TEXT, "Kind" },
        [PMU_CPUS] = { "CPUS", COLUMN_TEXT, "Cpus" },
        [PMU_COUNTERS] = { "COUNTERS", COLUMN_SOME, "Counters" },
        [PMU_FIXED] = { "FIXED", COLUMN_TEXTS, "Fixed" },
        [PMU_KERNEL] = { "KERNEL", COLUMN_TEXTS, "Kernel" },
        [PMU_HOLDS] = { "HOLDS", COLUMN_NUMBERS, "" },
};

static const TableSpec pmus_spec = { "pmus", NULL, pmu_columns, _PMU_MAX };

/* Software PMUs have no limited counters, and there may be a hundred uncore ones. */
static bool pmu_matters(const Object *pmu) {
        return object_is(pmu, "Kind", "core") || object_is(pmu, "Kind", "breakpoint") ||
               object_number(pmu, "Counters") > 0;
}

static int pmus_fill(Status *s) {
        int r = table_new(s->c, &pmus_spec, &s->pmus);

        OBJECTS_FOREACH(pmu, &s->all, PERFALLOC_PMU_INTERFACE) {
                if (!pmu_matters(pmu) || r != 0)
                        continue;
                table_add_object(s->pmus, pmu);
                r = put_holds(s, s->pmus, PMU_HOLDS, NULL, object_text(pmu, "Name"));
        }
        return r;
}

/* ---- all of it ---- */

static bool has_core(const Status *s) {
        OBJECTS_FOREACH(pmu, &s->all, PERFALLOC_PMU_INTERFACE)
        if (object_is(pmu, "Kind", "core"))
                return true;
        return false;
}

static void print_headline(const Status *s) {
        if (s->n_granted > 0)
                printf("The counters are held by %zu hold%s", s->n_granted,
                       s->n_granted > 1 ? "s" : "");
        else if (s->n_yielding > 0)
                printf("Monitors are giving way to %zu hold%s", s->n_yielding,
                       s->n_yielding > 1 ? "s" : "");
        else
                printf("The counters are free: nobody holds them");
        if (s->n_waiting > 0)
                printf("; %zu wait%s in the queue", s->n_waiting, s->n_waiting > 1 ? "" : "s");
        printf(".\n");
        if (!has_core(s))
                printf("This machine has no core PMU; what can be held are other PMUs' "
                       "counters.\n");
}

static int print_section(const char *heading, Table *t) {
        if (table_rows(t) == 0)
                return 0;
        printf("\n%s\n", heading);
        return table_print(t, stdout);
}

static int status_print(const Status *s) {
        int r;

        print_headline(s);
        r = print_section("Holds", s->granted);
        if (r == 0)
                r = print_section("Waiting", s->waiting);
        if (r == 0)
                r = print_section("Monitors", s->monitors);
        return r == 0 ? print_section("PMUs", s->pmus) : r;
}

static int status_print_json(const Status *s) {
        Table *const tables[] = { s->granted, s->waiting, s->monitors, s->pmus };

        return tables_print_json(tables, ELEMENTSOF(tables), stdout);
}

int verb_status(Ctl *c, Refusal *why) {
        _cleanup_(status_done) Status s = { .c = c };
        int r;

        r = objects_fetch(c, &s.all, why);
        if (r == 0)
                r = views_make(&s);
        if (r == 0)
                r = granted_fill(&s);
        if (r == 0)
                r = waiting_fill(&s);
        if (r == 0)
                r = monitors_table(c, &s.all, &s.monitors, why);
        if (r == 0)
                r = pmus_fill(&s);
        if (r != 0)
                return r;
        return c->options->json ? status_print_json(&s) : status_print(&s);
}

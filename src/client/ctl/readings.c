/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "readings.h"

#include <inttypes.h>
#include <perfalloc/dbus.h>
#include <stdio.h>
#include <string.h>

void readings_done(Readings *r) {
        for (size_t i = 0; i < r->n; i++)
                free(r->paths[i]);
        free(r->paths);
        *r = READINGS_NULL;
}

int readings_add(Readings *rs, const char *word, Refusal *why) {
        char **more = reallocarray(rs->paths, rs->n + 1, sizeof(char *));
        int r;

        if (!more)
                return -ENOMEM;
        rs->paths = more;
        r = ctl_path("counter", word, &more[rs->n], why);
        if (r == 0)
                rs->n++;
        return r;
}

void readings_drop_last(Readings *r) {
        if (r->n > 0)
                free(r->paths[--r->n]);
}

int readings_append_paths(const Readings *rs, sd_bus_message *m) {
        int r = sd_bus_message_open_container(m, 'a', "o");

        for (size_t i = 0; i < rs->n && r >= 0; i++)
                r = sd_bus_message_append_basic(m, 'o', rs->paths[i]);
        return r < 0 ? r : MIN(sd_bus_message_close_container(m), 0);
}

/* ---- rows ---- */

typedef struct Row {
        uint64_t value, enabled_nsec, running_nsec, estimate;
        const char *quality;
} Row;

#define COLUMNS_BEFORE                                                                             \
        { "COUNTER", COLUMN_NUMBER }, {                                                            \
                "EVENT", COLUMN_TEXT                                                               \
        }
#define COLUMNS_AFTER                                                                              \
        { "VALUE", COLUMN_COUNT }, { "ESTIMATE", COLUMN_COUNT },                                   \
                { "AMOUNT", COLUMN_REAL, .rare = true }, { "UNIT", COLUMN_TEXT, .rare = true },    \
                { "ENABLED", COLUMN_NSEC }, { "RUNNING", COLUMN_NSEC }, {                          \
                "QUALITY", COLUMN_STATE                                                            \
        }

static const Column columns[] = {
        COLUMNS_BEFORE,           { "PMU", COLUMN_TEXT, .rare = true },
        { "CPU", COLUMN_NUMBER }, { "PID", COLUMN_NUMBER, .rare = true },
        { "TID", COLUMN_NUMBER }, COLUMNS_AFTER,
};
static const Column sum_columns[] = { COLUMNS_BEFORE, COLUMNS_AFTER };

static const TableSpec spec = { "readings", "Nothing is counted.", columns, ELEMENTSOF(columns) };
static const TableSpec sum_spec = { "readings", "Nothing is counted.", sum_columns,
                                    ELEMENTSOF(sum_columns) };

static bool row_is_counted(const Row *row) {
        return strcmp(row->quality, "not-counted") != 0;
}

/* In the unit of the event, where it has one. */
static void row_put_amount(Table *t, const Object *counter, const Row *row) {
        double scale = object_real(counter, "Scale");
        const char *unit = object_text(counter, "Unit");

        if (scale == 1 && !*unit)
                return;
        table_put_text(t, "UNIT", unit);
        if (row_is_counted(row))
                table_put_real(t, "AMOUNT", (double) row->estimate * scale);
}

static void row_put(Table *t, const Objects *all, const char *path, const Row *row) {
        const Object *o = objects_find(all, path);

        table_add_row(t);
        table_put_number(t, "COUNTER", path_number(path));
        table_put_text(t, "EVENT", o ? object_text(o, "Event") : "");
        table_put_number(t, "VALUE", row->value);
        if (row_is_counted(row))
                table_put_number(t, "ESTIMATE", row->estimate);
        if (o)
                row_put_amount(t, o, row);
        table_put_number(t, "ENABLED", row->enabled_nsec);
        table_put_number(t, "RUNNING", row->running_nsec);
        table_put_text(t, "QUALITY", row->quality);
}

/* ---- sums ---- */

int readings_call_new(Ctl *c, const Readings *rs, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = ctl_call_new(c, &m, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                             "ReadCounters");

        if (r >= 0)
                r = readings_append_paths(rs, m);
        if (r >= 0)
                *ret = TAKE_PTR(m);
        return r;
}

static int read_all(Ctl *c, const Readings *rs, sd_bus_message **ret, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = readings_call_new(c, rs, &m);

        return r < 0 ? r : ctl_call(c, m, ret, why);
}

static int open_persistent(Ctl *c, const char *path, Refusal *why) {
        return ctl_call_method(c, PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                               "OpenPersistent", NULL, why, "s", strrchr(path, '/') + 1);
}

/* Opens the persistent ones for reading on this connection. Own counters do not need it; for those
 * that are not persistent, the error of the first try stands. */
static int open_all_persistent(Ctl *c, const Readings *rs, Refusal *why) {
        int r = 0;

        for (size_t i = 0; i < rs->n && ctl_may_go_on(r); i++) {
                Refusal aside;

                r = open_persistent(c, rs->paths[i], &aside);
                if (r > 0 && r != CTL_E_UNKNOWN)
                        *why = aside;
        }
        return ctl_may_go_on(r) ? 0 : r;
}

static int read_again_as_reader(Ctl *c, const Readings *rs, sd_bus_message **ret, Refusal *why) {
        Refusal aside;
        int r = open_all_persistent(c, rs, why);

        if (r != 0)
                return r;
        r = read_all(c, rs, ret, &aside);
        return r > 0 ? CTL_E_DENIED : r;
}

static int sums_fill(Table *t, const Readings *rs, const Objects *all, sd_bus_message *m) {
        Row row;
        int r = sd_bus_message_enter_container(m, 'a', "(tttts)");

        for (size_t i = 0; i < rs->n && r >= 0; i++) {
                r = sd_bus_message_read(m, "(tttts)", &row.value, &row.enabled_nsec,
                                        &row.running_nsec, &row.estimate, &row.quality);
                if (r <= 0)
                        return r < 0 ? r : -EBADMSG;
                row_put(t, all, rs->paths[i], &row);
        }
        return MIN(r, 0);
}

int readings_read(Ctl *c, const Readings *rs, ReadingValue *ret, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = read_all(c, rs, &reply, why);

        if (r == 0)
                r = MIN(sd_bus_message_enter_container(reply, 'a', "(tttts)"), 0);
        for (size_t i = 0; i < rs->n && r == 0; i++) {
                ReadingValue *v = &ret[i];
                const char *quality;

                r = sd_bus_message_read(reply, "(tttts)", &v->value, &v->enabled_nsec,
                                        &v->running_nsec, &v->estimate, &quality);
                if (r <= 0)
                        return r < 0 ? r : -EBADMSG;
                (void) snprintf(v->quality, sizeof(v->quality), "%s", quality);
                r = 0;
        }
        return r;
}

int readings_print_answer(Ctl *c, const Readings *rs, const Objects *all, sd_bus_message *answer,
                          FILE *f) {
        _cleanup_(table_freep) Table *t = NULL;
        int r = table_new(c, &sum_spec, &t);

        if (r == 0)
                r = sums_fill(t, rs, all, answer);
        return r == 0 ? table_print(t, f) : r;
}

int readings_print(Ctl *c, const Readings *rs, FILE *f, Refusal *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        int r;

        r = read_all(c, rs, &reply, why);
        if (r == CTL_E_DENIED)
                r = read_again_as_reader(c, rs, &reply, why);
        if (r == 0)
                r = ctl_fetch_all(c, &all, why);
        return r == 0 ? readings_print_answer(c, rs, &all, reply, f) : r;
}

/* ---- each ---- */

typedef struct Part {
        int32_t cpu;
        uint32_t pid, tid;
        const char *pmu;
        Row row;
} Part;

/* 0: there are no more. */
static int part_read(sd_bus_message *m, Part *ret) {
        Row *row = &ret->row;

        return sd_bus_message_read(m, "(iuustttts)", &ret->cpu, &ret->pid, &ret->tid, &ret->pmu,
                                   &row->value, &row->enabled_nsec, &row->running_nsec,
                                   &row->estimate, &row->quality);
}

/* Whether more than one PMU counts it, and whether a thread is not the first of its process: else
 * nobody asks for these columns. */
typedef struct PartsKind {
        bool pmus, processes;
} PartsKind;

static int parts_look(sd_bus_message *m, PartsKind *ret) {
        const char *first = NULL;
        Part part;
        int r;

        *ret = (PartsKind){};
        while ((r = part_read(m, &part)) > 0) {
                first = first ?: part.pmu;
                ret->pmus |= *part.pmu && strcmp(part.pmu, first) != 0;
                ret->processes |= part.tid != part.pid;
        }
        return r < 0 ? r : sd_bus_message_rewind(m, false);
}

static int each_fill(Table *t, const char *path, const Objects *all, sd_bus_message *m) {
        int r = sd_bus_message_enter_container(m, 'a', "(iuustttts)");
        PartsKind kind;
        Part part;

        if (r >= 0)
                r = parts_look(m, &kind);
        while (r >= 0 && (r = part_read(m, &part)) > 0) {
                row_put(t, all, path, &part.row);
                if (kind.pmus)
                        table_put_text(t, "PMU", part.pmu);
                if (part.cpu >= 0)
                        table_put_number(t, "CPU", (uint64_t) part.cpu);
                if (kind.processes && part.pid > 0)
                        table_put_number(t, "PID", part.pid);
                if (part.tid > 0)
                        table_put_number(t, "TID", part.tid);
        }
        return MIN(r, 0);
}

static int read_each(Ctl *c, const char *path, sd_bus_message **ret, Refusal *why) {
        Refusal aside;
        int r = ctl_call_method(c, path, PERFALLOC_COUNTER_INTERFACE, "ReadParts", ret, why, "");

        if (r != CTL_E_DENIED || open_persistent(c, path, &aside) != 0)
                return r;
        return ctl_call_method(c, path, PERFALLOC_COUNTER_INTERFACE, "ReadParts", ret, why, "");
}

int readings_print_each(Ctl *c, const Readings *rs, FILE *f, Refusal *why) {
        _cleanup_(objects_done) Objects all = OBJECTS_NULL;
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        r = ctl_fetch_all(c, &all, why);
        if (r == 0)
                r = table_new(c, &spec, &t);
        for (size_t i = 0; i < rs->n && r == 0; i++) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

                r = read_each(c, rs->paths[i], &reply, why);
                if (r == 0)
                        r = each_fill(t, rs->paths[i], &all, reply);
        }
        return r == 0 ? table_print(t, f) : r;
}

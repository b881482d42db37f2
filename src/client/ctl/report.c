/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/words.h"

#define EVENT_WIDTH 22
#define NOTE_WIDTH  21

static const char *const qualities[] = {
        [REPORT_EXACT] = "exact",
        [REPORT_SCALED] = "scaled",
        [REPORT_NOT_COUNTED] = "not-counted",
};

int report_init(Report *r, const char *command, char *const *events) {
        size_t n = 0;

        while (events[n])
                n++;
        *r = (Report){ .command = command, .rows = calloc(n + 1, sizeof(ReportRow)) };
        if (!r->rows)
                return -ENOMEM;
        for (; r->n_rows < n; r->n_rows++) {
                r->rows[r->n_rows].event = strdup(events[r->n_rows]);
                if (!r->rows[r->n_rows].event) {
                        report_done(r);
                        return -ENOMEM;
                }
        }
        return 0;
}

void report_done(Report *r) {
        for (size_t i = 0; i < r->n_rows; i++)
                free(r->rows[i].event);
        free(r->rows);
        *r = (Report){};
}

void report_add(Report *r, size_t row, const ReportRun *run) {
        ReportRow *to = &r->rows[row];

        if (run->quality != REPORT_NOT_COUNTED)
                sample_sum_add(&to->value, run->value);
        to->enabled_nsec += run->enabled_nsec;
        to->running_nsec += run->running_nsec;
        to->quality = MAX(to->quality, run->quality);
}

void report_add_times(Report *r, double elapsed, double user, double system) {
        sample_sum_add(&r->elapsed, elapsed);
        sample_sum_add(&r->user, user);
        sample_sum_add(&r->system, system);
}

/* ---- what belongs together ---- */

/* An event beside another one; what is shown is their ratio, times scale. */
static const struct {
        const char *event, *other;
        double scale;
        const char *unit;
} ratios[] = {
        { "instructions", "cycles", 1, " insn per cycle" },
        { "branch-misses", "branches", 100, "% of all branches" },
        { "branch-misses", "branch-instructions", 100, "% of all branches" },
        { "cache-misses", "cache-references", 100, "% of all cache refs" },
        { "L1-dcache-load-misses", "L1-dcache-loads", 100, "% of all L1-dcache loads" },
        { "L1-icache-load-misses", "L1-icache-loads", 100, "% of all L1-icache loads" },
        { "LLC-load-misses", "LLC-loads", 100, "% of all LLC loads" },
        { "dTLB-load-misses", "dTLB-loads", 100, "% of all dTLB loads" },
        { "iTLB-load-misses", "iTLB-loads", 100, "% of all iTLB loads" },
        { "stalled-cycles-frontend", "cycles", 100, "% frontend cycles idle" },
        { "stalled-cycles-backend", "cycles", 100, "% backend cycles idle" },
        { "cycles", "task-clock", 1, " GHz" },
};

/* Length of the name without modifiers. */
static size_t name_length(const char *event) {
        return strcspn(event, ":");
}

static bool row_is(const ReportRow *row, const char *name) {
        return name_length(row->event) == strlen(name) &&
               strncmp(row->event, name, strlen(name)) == 0;
}

/* Clocks count the same with any modifier; other events belong together only if these are the
 * same. */
static const ReportRow *row_beside(const Report *r, const ReportRow *row, const char *name) {
        const char *modifiers = row->event + name_length(row->event);

        for (size_t i = 0; i < r->n_rows; i++) {
                const ReportRow *other = &r->rows[i];

                if (row_is(other, name) && other->value.n > 0 && other->value.mean > 0 &&
                    (strcmp(name, "task-clock") == 0 ||
                     strcmp(other->event + name_length(other->event), modifiers) == 0))
                        return other;
        }
        return NULL;
}

static bool row_is_clock(const ReportRow *row) {
        return row_is(row, "task-clock") || row_is(row, "cpu-clock");
}

/* How often it happened while the command ran. */
static void note_rate(const Report *r, const ReportRow *row, char *note) {
        const ReportRow *clock = row_beside(r, row, "task-clock");
        _cleanup_free_ char *rate = NULL;

        if (!clock)
                return;
        rate = words_rate(row->value.mean * 1e9 / clock->value.mean);
        (void) snprintf(note, REPORT_NOTE_MAX, "%s/s", rate ?: "?");
}

void report_note(const Report *r, const ReportRow *row, char ret[static REPORT_NOTE_MAX]) {
        ret[0] = '\0';
        if (row->value.n == 0)
                return;
        if (row_is_clock(row)) {
                if (r->elapsed.mean > 0)
                        (void) snprintf(ret, REPORT_NOTE_MAX, "%.3f CPUs used",
                                        row->value.mean / 1e9 / r->elapsed.mean);
                return;
        }
        for (size_t i = 0; i < ELEMENTSOF(ratios); i++) {
                const ReportRow *other =
                        row_is(row, ratios[i].event) ? row_beside(r, row, ratios[i].other) : NULL;

                if (other) {
                        (void) snprintf(ret, REPORT_NOTE_MAX, "%.2f%s",
                                        ratios[i].scale * row->value.mean / other->value.mean,
                                        ratios[i].unit);
                        return;
                }
        }
        note_rate(r, row, ret);
}

/* ---- for people ---- */

/* Clocks count nanoseconds. */
static char *value_words(const ReportRow *row) {
        if (row->value.n == 0)
                return strdup("<not counted>");
        if (row_is_clock(row))
                return words_format("%.2f ms", row->value.mean / 1e6);
        return words_count((uint64_t) (row->value.mean + 0.5));
}

/* After the columns: how sure the value is. */
static void tail_print(const ReportRow *row, FILE *f) {
        if (row->value.n > 1)
                fprintf(f, "  (+- %.2f%%)", sample_sum_spread(&row->value));
        if (row->quality == REPORT_SCALED && row->enabled_nsec > 0)
                fprintf(f, "  (counted %.0f%% of the time)",
                        100.0 * (double) row->running_nsec / (double) row->enabled_nsec);
}

static int row_print(const Report *r, const ReportRow *row, FILE *f) {
        bool tail = row->value.n > 1 || row->quality == REPORT_SCALED;
        _cleanup_free_ char *value = value_words(row);
        char note[REPORT_NOTE_MAX];

        if (!value)
                return -ENOMEM;
        report_note(r, row, note);
        fprintf(f, "%18s  ", value);
        if (*note)
                fprintf(f, "%-*s # %-*s", EVENT_WIDTH, row->event, tail ? NOTE_WIDTH : 0, note);
        else
                fprintf(f, "%-*s", tail ? EVENT_WIDTH + 3 + NOTE_WIDTH : 0, row->event);
        tail_print(row, f);
        fputc('\n', f);
        return 0;
}

static void time_print(const SampleSum *s, const char *name, FILE *f) {
        fprintf(f, "%18.6f  seconds %s", s->mean, name);
        if (s->n > 1)
                fprintf(f, "  (+- %.2f%%)", sample_sum_spread(s));
        fputc('\n', f);
}

int report_print(const Report *r, FILE *f) {
        int result = 0;

        fprintf(f, "\nCounted for '%s'", r->command);
        if (r->elapsed.n > 1)
                fprintf(f, " (%u runs, means)", r->elapsed.n);
        fputs(":\n\n", f);
        for (size_t i = 0; i < r->n_rows && result == 0; i++)
                result = row_print(r, &r->rows[i], f);
        fputc('\n', f);
        time_print(&r->elapsed, "elapsed", f);
        time_print(&r->user, "user", f);
        time_print(&r->system, "system", f);
        fputc('\n', f);
        return result;
}

/* ---- for programs ---- */

int report_print_json(const Report *r, FILE *f) {
        fputs("{\n\t\"readings\": [", f);
        for (size_t i = 0; i < r->n_rows; i++) {
                const ReportRow *row = &r->rows[i];
                _cleanup_free_ char *event = words_json(row->event);

                if (!event)
                        return -ENOMEM;
                fprintf(f, "%s\n\t\t{ \"event\": %s, \"value\": ", i > 0 ? "," : "", event);
                fprintf(f, row->value.n > 0 ? "%.17g" : "null", row->value.mean);
                fprintf(f,
                        ", \"spread\": %.6g, \"enabled\": %" PRIu64 ", \"running\": %" PRIu64
                        ", \"quality\": \"%s\" }",
                        sample_sum_spread(&row->value), row->enabled_nsec, row->running_nsec,
                        qualities[row->quality]);
        }
        fprintf(f,
                "\n\t],\n\t\"runs\": %u,\n\t\"times\": { \"elapsed\": %.6f, \"user\": %.6f, "
                "\"system\": %.6f, \"spread\": %.6g }\n}\n",
                r->elapsed.n, r->elapsed.mean, r->user.mean, r->system.mean,
                sample_sum_spread(&r->elapsed));
        return 0;
}

static void time_print_fields(const SampleSum *s, const char *name, const char *separator,
                              FILE *f) {
        fprintf(f, "%.6f%s%s%sexact%s%.2f\n", s->mean, separator, name, separator, separator,
                sample_sum_spread(s));
}

void report_print_fields(const Report *r, const char *separator, FILE *f) {
        for (size_t i = 0; i < r->n_rows; i++) {
                const ReportRow *row = &r->rows[i];

                if (row->value.n > 0)
                        fprintf(f, "%.0f", row->value.mean);
                fprintf(f, "%s%s%s%s%s%.2f\n", separator, row->event, separator,
                        qualities[row->quality], separator, sample_sum_spread(&row->value));
        }
        time_print_fields(&r->elapsed, "elapsed", separator, f);
        time_print_fields(&r->user, "user", separator, f);
        time_print_fields(&r->system, "system", separator, f);
}

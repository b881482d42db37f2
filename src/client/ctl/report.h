/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What one or several runs of a command have counted, in the form of perf-stat(1): one line for
 * each event, with what it means beside others, and the times.
 */

#include <stdio.h>

#include "client/ctl/sample-sum.h"

typedef struct Report Report;
typedef struct ReportRow ReportRow;
typedef struct ReportRun ReportRun;

typedef enum ReportQuality {
        REPORT_EXACT,
        REPORT_SCALED,
        REPORT_NOT_COUNTED,
} ReportQuality;

struct ReportRow {
        char *event;
        SampleSum value; /* the estimate where it is scaled */
        uint64_t enabled_nsec, running_nsec;
        ReportQuality quality; /* the worst of all runs */
};

struct Report {
        const char *command;
        ReportRow *rows;
        size_t n_rows;
        SampleSum elapsed, user, system; /* seconds */
};

/* One event in one run. */
struct ReportRun {
        double value;
        uint64_t enabled_nsec, running_nsec;
        ReportQuality quality;
};

/* events is NULL-terminated. -ENOMEM. */
int report_init(Report *r, const char *command, char *const *events);
void report_done(Report *r);

void report_add(Report *r, size_t row, const ReportRun *run);
void report_add_times(Report *r, double elapsed, double user, double system);

/* What a row means beside others, as "1.52 insn per cycle"; "" if nothing. */
#define REPORT_NOTE_MAX 64
void report_note(const Report *r, const ReportRow *row, char ret[static REPORT_NOTE_MAX]);

/* For people; as JSON; as one line for each event, its fields separated by separator. -ENOMEM. */
int report_print(const Report *r, FILE *f);
int report_print_json(const Report *r, FILE *f);
void report_print_fields(const Report *r, const char *separator, FILE *f);

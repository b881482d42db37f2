/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lines of the two formats that Prometheus and similar programs read: its own text format, and
 * OpenMetrics (https://prometheus.io/docs/instrumenting/exposition_formats/). In both, all samples
 * of a family stand together, below its type and help. They differ in what the head of a counter
 * names, in the type info, and in the last line.
 */

#include "core/util.h"

typedef enum MetricsFormat {
        METRICS_PROMETHEUS,
        METRICS_OPENMETRICS,
} MetricsFormat;

typedef enum MetricType {
        METRIC_GAUGE,
        METRIC_COUNTER,
        METRIC_INFO,
} MetricType;

/* By its name on the command line. False: there is no such format. */
bool metrics_format_find(const char *name, MetricsFormat *ret);

/* The two lines above the samples of a family. name has no "_total" or "_info". */
void metrics_head(MetricsFormat format, const char *name, MetricType type, const char *help);

/* What a sample's name has behind that of its family. */
const char *metric_suffix(MetricType type);

/* A sample's value and the end of its line. per_second: n counts fractions of a second, of which so
 * many are one; 0: n is a number. */
void metrics_value(uint64_t n, uint64_t per_second);

void metrics_real(double value);

void metrics_end(MetricsFormat format);

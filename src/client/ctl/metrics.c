/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const format_names[] = {
        [METRICS_PROMETHEUS] = "prometheus",
        [METRICS_OPENMETRICS] = "openmetrics",
};

static const struct {
        const char *openmetrics, *prometheus, *suffix;
} types[] = {
        [METRIC_GAUGE] = { "gauge", "gauge", "" },
        [METRIC_COUNTER] = { "counter", "counter", "_total" },
        [METRIC_INFO] = { "info", "gauge", "_info" },
};

bool metrics_format_find(const char *name, MetricsFormat *ret) {
        for (size_t i = 0; i < ELEMENTSOF(format_names); i++)
                if (strcmp(name, format_names[i]) == 0) {
                        *ret = (MetricsFormat) i;
                        return true;
                }
        return false;
}

const char *metric_suffix(MetricType type) {
        return types[type].suffix;
}

void metrics_head(MetricsFormat format, const char *name, MetricType type, const char *help) {
        if (format == METRICS_OPENMETRICS)
                printf("# TYPE %s %s\n# HELP %s %s\n", name, types[type].openmetrics, name, help);
        else
                printf("# HELP %s%s %s\n# TYPE %s%s %s\n", name, types[type].suffix, help, name,
                       types[type].suffix, types[type].prometheus);
}

void metrics_value(uint64_t n, uint64_t per_second) {
        if (per_second > 0)
                printf(" %.*f\n", per_second == NSEC_PER_SEC ? 9 : 6,
                       (double) n / (double) per_second);
        else
                printf(" %" PRIu64 "\n", n);
}

void metrics_real(double value) {
        printf(" %.17g\n", value);
}

void metrics_end(MetricsFormat format) {
        if (format == METRICS_OPENMETRICS)
                printf("# EOF\n");
}

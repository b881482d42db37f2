/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "monitor-report.h"

#include <stdio.h>

#include "core/clock.h"

/* "123 page-faults", "1.5 Joules of power/energy-pkg/" */
static void format_amount(const Event *e, double value, char *ret, size_t size) {
        if (*e->unit)
                (void) snprintf(ret, size, "%.6g %s of %s", value * e->scale, e->unit, e->name);
        else
                (void) snprintf(ret, size, "%.0f %s", value * e->scale, e->name);
}

const char *monitor_report(const char *monitor, const Event *e, const Reading *reading,
                           char ret[static MONITOR_REPORT_MAX]) {
        double enabled = (double) reading->enabled / NSEC_PER_SEC;
        double running = (double) reading->running / NSEC_PER_SEC;
        char counted[EVENT_NAME_MAX + 64], estimated[EVENT_NAME_MAX + 64];

        format_amount(e, (double) reading->value, counted, sizeof(counted));
        if (reading->quality == QUALITY_EXACT)
                (void) snprintf(ret, MONITOR_REPORT_MAX, "Monitor %.64s: %s in %.1f CPU seconds.",
                                monitor, counted, enabled);
        else if (reading->quality == QUALITY_SCALED) {
                format_amount(e, (double) reading->estimate, estimated, sizeof(estimated));
                (void) snprintf(ret, MONITOR_REPORT_MAX,
                                "Monitor %.64s: about %s in %.1f CPU seconds, of which %.1f were "
                                "counted.",
                                monitor, estimated, enabled, running);
        } else
                (void) snprintf(ret, MONITOR_REPORT_MAX,
                                "Monitor %.64s: %s is not counted now (it has yielded, or no "
                                "counter is free); %s before.",
                                monitor, e->name, counted);
        return ret;
}

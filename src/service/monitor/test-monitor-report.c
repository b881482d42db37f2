/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/monitor/monitor-report.h"

#include <glib.h>

#include "core/clock.h"

static const Event faults = { .name = (char *) "page-faults", .scale = 1, .unit = (char *) "" };
static const Event energy = { .name = (char *) "power/energy-pkg/",
                              .scale = 0.5,
                              .unit = (char *) "Joules" };

static void assert_report(const Event *e, uint64_t running_sec, Quality quality,
                          const char *expected) {
        const Reading reading = { .value = 246,
                                  .enabled = 100 * NSEC_PER_SEC,
                                  .running = running_sec * NSEC_PER_SEC,
                                  .estimate = 492,
                                  .quality = quality };
        char text[MONITOR_REPORT_MAX];

        g_assert_cmpstr(monitor_report("night", e, &reading, text), ==, expected);
}

static void values_have_units(void) {
        assert_report(&faults, 100, QUALITY_EXACT,
                      "Monitor night: 246 page-faults in 100.0 CPU seconds.");
        assert_report(&energy, 100, QUALITY_EXACT,
                      "Monitor night: 123 Joules of power/energy-pkg/ in 100.0 CPU seconds.");
}

static void estimates_are_told_from_counts(void) {
        assert_report(&faults, 50, QUALITY_SCALED,
                      "Monitor night: about 492 page-faults in 100.0 CPU seconds, of which 50.0 "
                      "were counted.");
}

static void what_is_not_counted_is_said(void) {
        assert_report(&faults, 0, QUALITY_NOT_COUNTED,
                      "Monitor night: page-faults is not counted now (it has yielded, or no "
                      "counter is free); 246 page-faults before.");
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/monitor-report/values-have-units", values_have_units);
        g_test_add_func("/monitor-report/estimates-are-told-from-counts",
                        estimates_are_told_from_counts);
        g_test_add_func("/monitor-report/what-is-not-counted-is-said", what_is_not_counted_is_said);
        return g_test_run();
}

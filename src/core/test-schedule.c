/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/schedule.h"

#include <glib.h>

#define ENTRIES 64
#define STEPS   200000

/* Who should be first, found by looking at everybody. */
static const ScheduleEntry *reference_first(const ScheduleEntry *entries, const bool *in) {
        const ScheduleEntry *first = NULL;

        for (size_t i = 0; i < ENTRIES; i++)
                if (in[i] &&
                    (!first || entries[i].due_usec < first->due_usec ||
                     (entries[i].due_usec == first->due_usec && entries[i].number < first->number)))
                        first = &entries[i];
        return first;
}

static uint64_t random_due(void) {
        return g_test_rand_int_range(0, 20) == 0 ? SCHEDULE_NEVER
                                                 : (uint64_t) g_test_rand_int_range(0, 100);
}

static void test_reference(void) {
        ScheduleEntry entries[ENTRIES] = {};
        bool in[ENTRIES] = {};
        Schedule schedule = {};

        for (int step = 0; step < STEPS; step++) {
                size_t i = (size_t) g_test_rand_int_range(0, ENTRIES);

                if (!in[i]) {
                        entries[i] = (ScheduleEntry){ .due_usec = random_due(), .number = i };
                        g_assert_cmpint(schedule_add(&schedule, &entries[i]), ==, 0);
                        in[i] = true;
                } else if (g_test_rand_bit()) {
                        schedule_move(&schedule, &entries[i], random_due());
                } else {
                        schedule_remove(&schedule, &entries[i]);
                        in[i] = false;
                }
                g_assert_true(schedule_first(&schedule) == reference_first(entries, in));
        }
        schedule_done(&schedule);
}

static void test_ties(void) {
        ScheduleEntry entries[8];
        Schedule schedule = {};

        for (size_t i = 8; i-- > 0;) {
                entries[i] = (ScheduleEntry){ .due_usec = 5, .number = i };
                g_assert_cmpint(schedule_add(&schedule, &entries[i]), ==, 0);
        }
        for (size_t i = 0; i < 8; i++) {
                g_assert_true(schedule_first(&schedule) == &entries[i]);
                schedule_remove(&schedule, &entries[i]);
        }
        g_assert_null(schedule_first(&schedule));
        schedule_done(&schedule);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/schedule/first-is-the-first-of-all", test_reference);
        g_test_add_func("/schedule/ties-in-the-order-of-numbers", test_ties);
        return g_test_run();
}

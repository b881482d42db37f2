/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/event/event-words.h"

#include <linux/hw_breakpoint.h>

#include <glib.h>

static void check(struct perf_event_attr attr, const char *pmu, const char *expected) {
        const Pmu p = { .name = (char *) (uintptr_t) pmu };
        char words[EVENT_WORDS_SIZE];

        event_words(&(Attr){ .known = attr }, &p, words);
        g_assert_cmpstr(words, ==, expected);
}

static void test_generic_events_have_their_names(void) {
        check((struct perf_event_attr){ .type = PERF_TYPE_HARDWARE }, "cpu", "cycles");
        check((struct perf_event_attr){ .type = PERF_TYPE_HARDWARE,
                                        .config = 4ull << 32 | PERF_COUNT_HW_INSTRUCTIONS,
                                        .exclude_kernel = 1,
                                        .sample_period = 1000 },
              "cpu_core", "instructions");
        check((struct perf_event_attr){ .type = PERF_TYPE_HW_CACHE, .config = 1 << 16 }, "cpu",
              "L1-dcache-load-misses");
        check((struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE,
                                        .config = PERF_COUNT_SW_PAGE_FAULTS },
              "software", "page-faults");
}

static void test_others_have_all_that_is_set(void) {
        check((struct perf_event_attr){ .type = PERF_TYPE_RAW, .config = 0x3c }, "cpu",
              "cpu/config=0x3c/");
        check((struct perf_event_attr){ .type = PERF_TYPE_HARDWARE, .config1 = 1 }, "cpu",
              "cpu/config=0x0,config1=0x1/");
        check((struct perf_event_attr){ .type = PERF_TYPE_BREAKPOINT,
                                        .bp_addr = 0x1000,
                                        .bp_len = 4,
                                        .bp_type = HW_BREAKPOINT_W },
              "breakpoint", "breakpoint/config=0x0,config1=0x1000,config2=0x4,bp_type=0x2/");
}

static void test_there_is_room_for_all(void) {
        Attr a = { .known = { .type = PERF_TYPE_RAW } };
        g_autofree char *name = g_strnfill(200, 'x');
        char words[EVENT_WORDS_SIZE];

        attr_set_number(&a, ATTR_CONFIG, UINT64_MAX);
        attr_set_number(&a, ATTR_CONFIG1, UINT64_MAX);
        attr_set_number(&a, ATTR_CONFIG2, UINT64_MAX);
        attr_set_number(&a, ATTR_CONFIG3, UINT64_MAX);
        attr_set_number(&a, ATTR_CONFIG4, UINT64_MAX);
        attr_set_number(&a, ATTR_BP_TYPE, UINT64_MAX);
        event_words(&a, &(const Pmu){ .name = name }, words);
        g_assert_true(g_str_has_suffix(words, ",config4=0xffffffffffffffff,bp_type=0xffffffff/"));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/event-words/generic-events-have-their-names",
                        test_generic_events_have_their_names);
        g_test_add_func("/event-words/others-have-all-that-is-set",
                        test_others_have_all_that_is_set);
        g_test_add_func("/event-words/there-is-room-for-all", test_there_is_room_for_all);
        return g_test_run();
}

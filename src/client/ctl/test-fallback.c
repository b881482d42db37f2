/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/ctl/fallback.h"

#include <glib.h>

#include "core/event-list.h"

static void test_event(const char *event, const char *wanted) {
        char *text;

        g_test_message("%s", event);
        g_assert_cmpint(fallback_event(event, &text), ==, 0);
        g_assert_cmpstr(text, ==, wanted);
        free(text);
}

static void test_plain_events_get_the_modifier(void) {
        test_event("page-faults", "page-faults:u");
        test_event("cycles:pp", "cycles:pp:u");
        test_event("skl::UOPS_RETIRED:ALL", "skl::UOPS_RETIRED:ALL:u");
        test_event("perf::PAGE-FAULTS", "perf::PAGE-FAULTS:u");
        test_event("cpu/event=0x3c,umask=0/", "cpu/event=0x3c,umask=0/u");
        test_event("cpu/cycles/pp", "cpu/cycles/ppu");
        /* libpfm4's: c is no privilege, and U is an umask */
        test_event("L1D:U:c=1", "L1D:U:c=1:u");
}

static void test_events_that_say_it_stay(void) {
        test_event("cycles:u", NULL);
        test_event("cycles:uk", NULL);
        test_event("cycles:kpp", NULL);
        test_event("cycles:pp:k", NULL);
        test_event("skl::UOPS_RETIRED:ALL:u=1:k=0", NULL);
        test_event("cpu/cycles/k", NULL);
        test_event("mem:0x1000/8:w", NULL);
}

static void test_list_is_changed_where_it_can_be(void) {
        char *const mixed[] = { (char *) "page-faults", (char *) "cycles:k", NULL };
        char **events;

        g_assert_cmpint(fallback_events(mixed, &events), ==, 0);
        g_assert_cmpstr(events[0], ==, "page-faults:u");
        g_assert_cmpstr(events[1], ==, "cycles:k");
        g_assert_null(events[2]);
        events = event_list_free(events);
        g_assert_cmpint(fallback_events(mixed + 1, &events), ==, 0);
        g_assert_null(events);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/fallback/plain-events-get-the-modifier",
                        test_plain_events_get_the_modifier);
        g_test_add_func("/fallback/events-that-say-it-stay", test_events_that_say_it_stay);
        g_test_add_func("/fallback/list-is-changed-where-it-can-be",
                        test_list_is_changed_where_it_can_be);
        return g_test_run();
}

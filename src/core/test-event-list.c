/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/event-list.h"

#include <glib.h>

static void test_lists_are_cut_at_commas_outside_of_slashes(void) {
        static const struct {
                const char *list, *events; /* with blanks between them */
        } lists[] = {
                { "cycles", "cycles" },
                { "cycles,instructions:u", "cycles instructions:u" },
                { "cpu/event=1,umask=2/u,cycles", "cpu/event=1,umask=2/u cycles" },
                { "cycles,cpu/event=1,umask=2/", "cycles cpu/event=1,umask=2/" },
                { "mem:0x1000/8:w,cycles,msr/tsc/", "mem:0x1000/8:w cycles msr/tsc/" },
                { "sched:sched_switch,cpu//,r1", "sched:sched_switch cpu// r1" },
                { "cpu/event=1,umask=2", "cpu/event=1,umask=2" },
                { "a,,b,", "a  b " },
                { "", "" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
                g_auto(GStrv) events = g_strsplit(lists[i].events, " ", -1);
                g_autofree char *copy = g_strdup(lists[i].list);
                char *rest = copy, *event;
                size_t n = 0;

                g_assert_cmpuint(event_list_count(copy), ==, MAX(g_strv_length(events), 1));
                while ((event = event_list_next(&rest)))
                        g_assert_cmpstr(event, ==, events[n] ? events[n++] : "");
        }
}

static void test_words_become_single_events(void) {
        const char *const words[] = { "cpu/event=1,umask=2/u,cycles", "mem:0x1000/8:w,page-faults",
                                      "a,", NULL };
        const char *const wanted[] = {
                "cpu/event=1,umask=2/u", "cycles", "mem:0x1000/8:w", "page-faults", "a", "", NULL
        };
        _cleanup_(event_list_freep) char **events = NULL;

        g_assert_cmpint(event_list_split((char *const *) words, &events), ==, 0);
        g_assert_cmpstrv(events, wanted);
}

static void test_no_words_are_no_events(void) {
        char *const words[] = { NULL };
        _cleanup_(event_list_freep) char **events = NULL;

        g_assert_cmpint(event_list_split(words, &events), ==, 0);
        g_assert_null(events[0]);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/event-list/lists-are-cut-at-commas-outside-of-slashes",
                        test_lists_are_cut_at_commas_outside_of_slashes);
        g_test_add_func("/event-list/words-become-single-events", test_words_become_single_events);
        g_test_add_func("/event-list/no-words-are-no-events", test_no_words_are_no_events);
        return g_test_run();
}

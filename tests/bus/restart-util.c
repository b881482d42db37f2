/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "restart-util.h"

void restart_tests_add(const RestartTest *tests, size_t n) {
        static const struct {
                const char *name, *command;
        } ways[] = { { "restarted", RESTARTED }, { "killed", KILLED } };

        for (size_t i = 0; i < n; i++)
                for (size_t way = 0; way < G_N_ELEMENTS(ways); way++) {
                        g_autofree char *name =
                                g_strdup_printf("/%s/%s", ways[way].name, tests[i].name);

                        g_test_add_data_func(name, ways[way].command, tests[i].test);
                }
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Tests that are made with both ways to restart the service: by SIGTERM, as systemctl restart does,
 * and by a kill. */

#include <glib.h>

/* Commands of the rig, which the test is given. */
#define RESTARTED "service-restart"
#define KILLED    "service-kill --again"

typedef struct RestartTest {
        const char *name;
        GTestDataFunc test;
} RestartTest;

/* As /restarted/NAME and /killed/NAME. */
void restart_tests_add(const RestartTest *tests, size_t n);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus-util.h"

#include <stdio.h>
#include <sys/stat.h>

void rig(const char *command, const char *input) {
        FILE *f = popen(command, "we");

        if (!f)
                g_error("%s: %s", command, g_strerror(errno));
        if (input)
                (void) fputs(input, f);
        if (pclose(f) != 0)
                g_error("%s failed", command);
}

void rig_configure(const char *text) {
        g_autoptr(GError) error = NULL;

        (void) g_file_set_contents("/etc/perfalloc/perfallocd.conf", text, -1, &error);
        g_assert_no_error(error);
        g_assert_cmpint(chmod("/etc/perfalloc/perfallocd.conf", 0644), ==, 0);
        rig("service-stop && service-start", NULL);
}

bool chance(int percent) {
        return g_test_rand_int_range(0, 100) < percent;
}

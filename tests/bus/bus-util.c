/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bus-util.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define MACHINE "/run/rig/machine"

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

bool rig_is_shared(void) {
        return access(MACHINE, F_OK) == 0;
}

int machine_lock(void) {
        int fd = -1;

        if (rig_is_shared() &&
            ((fd = open(MACHINE, O_RDWR | O_CLOEXEC)) < 0 || flock(fd, LOCK_EX) < 0))
                g_error(MACHINE ": %s", g_strerror(errno));
        return fd;
}

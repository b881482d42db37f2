/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cpu-switch.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <unistd.h>

#define CPU_SWITCH "/sys/devices/system/cpu/cpu" G_STRINGIFY(SWITCHED_CPU) "/online"

bool cpu_switch(bool online) {
        int fd = open(CPU_SWITCH, O_WRONLY | O_CLOEXEC), saved;
        bool done = fd >= 0 && write(fd, online ? "1" : "0", 1) == 1;

        saved = errno;
        if (fd >= 0)
                (void) close(fd);
        errno = saved;
        return done;
}

void cpu_must_switch(bool online) {
        if (!cpu_switch(online))
                g_error("CPU %d cannot be switched %s: %s", SWITCHED_CPU, online ? "on" : "off",
                        g_strerror(errno));
}

static void end_early(int number) {
        (void) cpu_switch(true);
        (void) raise(number);
}

void cpu_back_at_end(void) {
        const struct sigaction end = { .sa_handler = end_early, .sa_flags = SA_RESETHAND };
        static const int signals[] = { SIGABRT, SIGTERM, SIGTRAP }; /* the last is g_error()'s */

        for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
                (void) sigaction(signals[i], &end, NULL);
}

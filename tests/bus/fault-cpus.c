/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fault-operations.h"

#define CPU        "1" /* which can be switched off on most machines */
#define CPU_SWITCH "/sys/devices/system/cpu/cpu" CPU "/online"

/* Returns when the service has seen it: one that was pending is dispatched before the next but
 * one. */
static void cpu_switch(const char *online) {
        int fd = open(CPU_SWITCH, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || write(fd, online, 1) != 1)
                g_error("CPU " CPU " cannot be switched: %s", g_strerror(errno));
        close_fd(fd);
        ping();
        ping();
}

static void prepare_cpu(Scene *s) {
        s->other = client_new("root");
        s->second = counter_open(s->other, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu", "cpus",
                                 "s", CPU);
        s->path = hold_take(s->client, &s->fd, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(s->client, s->path));
}

static void run_cpu(Scene *s) {
        cpu_switch("0");
        cpu_switch("1");
        calm();
}

static bool counter_grows(Client *c, const char *path) {
        uint64_t before = counter_value(c, path);

        g_usleep(1000);
        return counter_value(c, path) > before;
}

static void after_cpu(Scene *s) {
        settle(counter_grows(s->other, s->second));
        settle(client_get_number(s->client, s->path, HOLD, "Confirmed", 'b') != 0);
}

const Operation cpu_operations[] = {
        { "cpu-goes-and-comes", "alice", prepare_cpu, run_cpu, after_cpu, NULL },
        {},
};

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cpu-switch.h"
#include "fault-operations.h"

/* Returns when the service has seen it: one that was pending is dispatched before the next but
 * one. */
static void cpu_switch_and_wait(bool online) {
        cpu_must_switch(online);
        ping();
        ping();
}

static void prepare_cpu(Scene *s) {
        s->other = client_new("root");
        s->second = counter_open(s->other, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu", "cpus",
                                 "s", G_STRINGIFY(SWITCHED_CPU));
        s->path = hold_take(s->client, &s->fd, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(s->client, s->path));
}

static void run_cpu(Scene *s) {
        cpu_switch_and_wait(false);
        cpu_switch_and_wait(true);
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Holds while a CPU is offline. */

#include "counter-calls.h"
#include "cpu-switch.h"
#include "hold-calls.h"
#include "service-process.h"

#define ON_IT BREAKPOINTS, "cpus", "s", "1"
_Static_assert(SWITCHED_CPU == 1, "that of ON_IT");

static bool go(void) {
        if (n_cpus() == 2 && cpu_switch(false))
                return true;
        g_test_skip("there is no second CPU to switch off, or there is a third");
        return false;
}

/* Nobody is blamed, and nothing has to be waited for. */
static void test_refused(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *hold = NULL;
        _cleanup_close_ int lease = -1;

        if (!go())
                return;
        hold = hold_take(alice, &lease, "a{sv}", 2, ON_IT);
        client_refused(alice, PERFALLOC_ERROR_OBSTRUCTED, hold, HOLD, "Wait", NULL);
        g_assert_nonnull(strstr(alice->refusal, "all CPUs of the hold (1) are offline"));
        g_assert_cmpuint(service_said("obstructed: all CPUs of the hold (1) are offline"), ==, 1);
        cpu_must_switch(true);
}

/* The hold is confirmed when its CPU is there. */
static void test_best_effort(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *hold = NULL, *again = NULL;
        _cleanup_close_ int lease = -1, lease_again = -1;

        if (!go())
                return;
        hold = hold_take(alice, &lease, "a{sv}", 3, ON_IT, "best_effort", "b", 1);
        g_assert_false(hold_wait(alice, hold));
        g_assert_true(hold_is(alice, hold, "granted"));
        lease = close_fd(lease);
        cpu_must_switch(true);
        again = hold_take(alice, &lease_again, "a{sv}", 2, ON_IT);
        g_assert_true(hold_wait(alice, again));
}

static bool is_confirmed(Client *c, const char *hold) {
        return client_get_number(c, hold, HOLD, "Confirmed", 'b') != 0;
}

static bool counter_grows(Client *c, const char *path) {
        uint64_t before = counter_value(c, path);

        g_usleep(1000);
        return counter_value(c, path) > before;
}

/* Its holder's own counters are not in the way of what they are promised there. */
static void test_in_use(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *hold = NULL, *event = watched_event(0), *clock = NULL;
        _cleanup_close_ int lease = -1;

        if (!go())
                return;
        cpu_must_switch(true);
        hold = hold_take(alice, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(alice, hold));
        g_free(counter_open_on(alice, event, getpid(), false));
        clock = counter_open(alice, "cpu-clock", "a{sv}", 2, "scope", "s", "cpu", "cpus", "s", "1");
        cpu_must_switch(false);
        cpu_must_switch(true);
        await(counter_grows(alice, clock)); /* the service has noticed */
        await(is_confirmed(alice, hold));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        cpu_back_at_end();
        g_test_add_func("/offline/refused", test_refused);
        g_test_add_func("/offline/best-effort", test_best_effort);
        g_test_add_func("/offline/its-holders-own-are-not-in-the-way", test_in_use);
        return g_test_run();
}

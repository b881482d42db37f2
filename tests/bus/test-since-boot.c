/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The property Totals: what the service has done since boot, however often it was started. */

#include "bus-util.h"

#include <sys/socket.h>
#include <unistd.h>

#include "event-util.h"

static uint64_t total(Client *c, const char *name) {
        g_autoptr(sd_bus_message) m = client_get_variant(c, MANAGER, "Totals", "a{st}");
        const char *key;
        uint64_t value;

        g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "{st}"), >, 0);
        while (sd_bus_message_read(m, "{st}", &key, &value) > 0)
                if (strcmp(key, name) == 0)
                        return value;
        g_error("no total %s", name);
}

/* Waits until it is more than before. */
static uint64_t total_grows(Client *c, const char *name, uint64_t before) {
        await(total(c, name) > before);
        return total(c, name);
}

static void restart(void) {
        rig("service-restart", NULL);
}

static void crash(void) {
        rig("service-kill --again", NULL);
}

static void test_holds_by_result(void) {
        g_autoptr(Client) alice = client_new("alice");
        uint64_t released = total(alice, "holds_released"), confirmed, latency, closed;
        g_autofree char *first = NULL, *second = NULL;
        int lease;

        confirmed = total(alice, "grants_confirmed");
        latency = total(alice, "latency_usec");
        closed = total(alice, "holds_lease_closed");
        first = hold_take(alice, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(alice, first));
        hold_release(alice, first);
        close(lease);
        g_assert_cmpuint(total(alice, "holds_released"), ==, released + 1);
        g_assert_cmpuint(total(alice, "grants_confirmed"), ==, confirmed + 1);
        g_assert_cmpuint(total(alice, "latency_usec"), >, latency);

        second = hold_take(alice, &lease, "a{sv}", 1, BREAKPOINTS);
        close(lease);
        total_grows(alice, "holds_lease_closed", closed);
        g_assert_cmpuint(total(alice, "holds_lease_closed"), ==, closed + 1);
        g_assert_cmpuint(total(alice, "grants_unconfirmed"), ==, 0);
}

static void test_held_and_yielded(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        uint64_t held = total(alice, "held_usec"), yielded = total(alice, "yielded_usec");
        g_autofree char *monitor = monitor_open(root, 0, 0), *hold = NULL;

        g_assert_cmpuint(total(alice, "held_usec"), ==, held);
        hold = hold_take_unattended(root, 0, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(root, hold));
        total_grows(alice, "held_usec", total_grows(alice, "held_usec", held));
        total_grows(alice, "yielded_usec", total_grows(alice, "yielded_usec", yielded));
        counter_do(root, monitor, "Close");
        yielded = total(alice, "yielded_usec");
        held = total(alice, "held_usec");
        hold_release(root, hold);
        g_assert_cmpuint(total(alice, "yielded_usec"), ==, yielded);
        held = total(alice, "held_usec");
        g_assert_cmpuint(total(alice, "held_usec"), ==, held);
}

/* again: how the service ends. A hold that is granted meanwhile is held all the time. */
static void assert_go_on(void (*again)(void)) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *hold = hold_take_unattended(root, 0, "a{sv}", 1, BREAKPOINTS);
        uint64_t starts = total(alice, "starts"), opened = total(alice, "counters_opened"), held;
        g_autofree char *counter G_GNUC_UNUSED = counter_open(alice, "task-clock:u", "a{sv}", 0);

        g_assert_true(hold_wait(root, hold));
        held = total(alice, "held_usec");
        again();
        g_assert_cmpuint(total(alice, "starts"), ==, starts + 1);
        g_assert_cmpuint(total(alice, "counters_opened"), ==, opened + 1);
        held = total_grows(alice, "held_usec", held);
        hold_release(root, hold);
        again();
        g_assert_cmpuint(total(alice, "starts"), ==, starts + 2);
        g_assert_cmpuint(total(alice, "held_usec"), >=, held);
}

static void test_restart(void) {
        assert_go_on(restart);
}

static void test_crash(void) {
        assert_go_on(crash);
}

static void test_stop(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *hold = NULL;
        uint64_t held = total(alice, "held_usec"), told;

        hold = hold_take_unattended(alice, 0, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(alice, hold));
        told = total_grows(alice, "held_usec", held);
        rig("service-stop", NULL);
        held = total(alice, "held_usec");
        g_assert_cmpuint(held, >=, told);
        g_assert_cmpuint(total(alice, "held_usec"), ==, held);
}

static void test_denials(void) {
        g_autoptr(Client) bob = client_new("bob");
        uint64_t before = total(bob, "denials");

        rig("rules 00-a-test",
            "polkit.addRule(function(action, subject) { if (subject.user == \"bob\" && "
            "action.id == \"org.perfalloc1.hold\") return polkit.Result.NO; });");
        for (unsigned i = 0; i < 2; i++)
                client_refused(bob, SD_BUS_ERROR_ACCESS_DENIED, MANAGER, "Hold", "sa{sv}", "mine",
                               1, BREAKPOINTS);
        g_assert_cmpuint(total(bob, "denials"), ==, before + 2);
        rig("rules --remove 00-a-test", NULL);
}

/* As it is refused where a prompt would be needed, which the message does not allow. */
static void test_denials_without_prompt(void) {
        g_autoptr(Client) bob = client_new("bob");
        uint64_t before = total(bob, "denials");
        unsigned said = service_said("Denied to uid");

        for (unsigned i = 0; i < 2; i++)
                client_refused(bob, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, MANAGER,
                               "HoldUnattended", "sta{sv}", "mine", (uint64_t) 0, 1, BREAKPOINTS);
        g_assert_cmpuint(total(bob, "denials"), ==, before + 2);
        g_assert_cmpuint(service_said("Denied to uid"), ==, said + 1);
}

static void test_events(void) {
        g_autoptr(Client) alice = client_new("alice");
        uint64_t before = total(alice, "events_opened");
        PerfAttr attr = software_attr(PERF_COUNT_SW_TASK_CLOCK);
        int fd = raw_open(alice, (Raw){ .attr = &attr, .cpu = -1 }, "a{sv}", 0);

        g_assert_cmpuint(total(alice, "events_opened"), ==, before + 1);
        close(fd);
}

/* One tick only, which is written at once; then none that were missed. */
static void test_ticks(void) {
        g_autoptr(Client) alice = client_new("alice");
        uint64_t ticks = total(alice, "ticks"), missed = total(alice, "ticks_missed");
        g_autoptr(sd_bus_message) reply G_GNUC_UNUSED =
                client_call(alice, MANAGER, "CreateSampler", "aota{sv}", 0, (uint64_t) 0, 1,
                            "start_usec", "t", (uint64_t) 0);

        g_assert_cmpuint(total_grows(alice, "ticks", ticks), ==, ticks + 1);
        g_assert_cmpuint(total(alice, "ticks_missed"), ==, missed);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);

        g_test_add_func("/since-boot/holds-are-counted-by-their-result", test_holds_by_result);
        g_test_add_func("/since-boot/held-and-yielded-times-grow-while-they-last",
                        test_held_and_yielded);
        g_test_add_func("/since-boot/restart-goes-on", test_restart);
        g_test_add_func("/since-boot/crash-goes-on", test_crash);
        g_test_add_func("/since-boot/stop-ends-what-is-held", test_stop);
        g_test_add_func("/since-boot/denials", test_denials);
        g_test_add_func("/since-boot/denials-without-a-prompt", test_denials_without_prompt);
        g_test_add_func("/since-boot/events", test_events);
        g_test_add_func("/since-boot/ticks", test_ticks);

        return g_test_run();
}

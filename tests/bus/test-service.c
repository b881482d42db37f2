/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The service process: its configuration, its idle exit, and numbers that are never used twice. */

#include "bus-util.h"
#include "event-util.h"

#include <signal.h>

static uint64_t number_of(const char *path) {
        return g_ascii_strtoull(strrchr(path, '/') + 1, NULL, 10);
}

static uint64_t hold_number(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = NULL;

        path = hold_take_unattended(root, 0, "a{sv}", 0);
        hold_release(root, path);
        return number_of(path);
}

static uint64_t counter_number(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = NULL;

        path = counter_open(root, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        counter_do(root, path, "Close");
        return number_of(path);
}

static void test_numbers_after_stop(void) {
        uint64_t hold = hold_number(), counter = counter_number();

        rig("service-stop", NULL);
        g_assert_cmpuint(hold_number(), >, hold);
        g_assert_cmpuint(counter_number(), >, counter);
}

static void test_numbers_after_kill(void) {
        uint64_t hold = hold_number(), counter = counter_number();

        rig("service-kill", NULL);
        g_assert_cmpuint(hold_number(), >, hold);
        g_assert_cmpuint(counter_number(), >, counter);
}

static bool is_gone(pid_t pid) {
        return kill(pid, 0) < 0;
}

static void test_idle_exit(void) {
        uint64_t counter;
        pid_t pid;

        rig_configure("[Limits]\nIdleExitSec=500ms\n");
        counter = counter_number();
        pid = service_pid();
        service_clock_forward(500 * USEC_PER_MSEC);
        await(is_gone(pid));
        g_assert_cmpuint(counter_number(), >, counter);
        g_assert_cmpint(service_pid(), !=, pid);
        rig_configure("");
}

static void test_stays_while_open(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = NULL, *other = NULL;
        pid_t pid;

        rig_configure("[Limits]\nIdleExitSec=500ms\n");
        path = counter_open(root, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        pid = service_pid();
        /* a hold that expires long after the idle time */
        other = hold_take_unattended(root, USEC_PER_SEC, "a{sv}", 0);
        service_clock_forward(USEC_PER_SEC);
        await(hold_is(root, other, "ended"));
        g_assert_cmpint(service_pid(), ==, pid);
        g_assert_true(counter_is(root, path, "counting"));
        counter_do(root, path, "Close");
        rig_configure("");
}

/* Whatever is due within that time has been done. */
static void pass(Client *root, uint64_t usec) {
        for (int i = 0; i < 2; i++) {
                g_autofree char *hold = hold_take_unattended(root, usec, "a{sv}", 0);

                service_clock_forward(usec);
                await(hold_is(root, hold, "ended"));
        }
}

/* A start is repeated for threads that were being created at that moment. */
static void test_a_stop_by_descriptor_stays(void) {
        g_autoptr(Client) root = client_new("root"), alice = client_new("alice");
        g_autofree char *event = watched_event(0),
                        *counter = counter_open(alice, event, "a{sv}", 0);
        g_autoptr(sd_bus_message) reply = client_call(alice, counter, COUNTER, "GetFds", NULL);
        int fd;

        g_assert_cmpint(sd_bus_message_read(reply, "ah", 1, &fd), >, 0);
        for (int i = 0; i < 2; i++) {
                g_assert_no_errno(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
                pass(root, USEC_PER_SEC);
                watched_write(0, 10);
                g_assert_cmpuint(counter_value(alice, counter), ==, 0);
                counter_do(alice, counter, "Stop");
                counter_do(alice, counter, "Start");
        }
        counter_do(alice, counter, "Close");
}

static void test_hold_max(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *path = NULL, *rooted = NULL;
        _cleanup_close_ int a = -1, b = -1;
        uint64_t requested;

        rig_configure("[Limits]\nHoldMaxSec=300ms\n");
        rooted = hold_take(root, &b, "a{sv}", 1, BREAKPOINTS);
        path = hold_take(alice, &a, "a{sv}", 1, BREAKPOINTS);
        requested = client_get_number(alice, path, HOLD, "RequestTimestamp", 't');
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "ExpireTimestamp", 't'), ==,
                         requested + 300 * USEC_PER_MSEC);
        g_assert_true(hold_wait(alice, path));
        await(hold_is(alice, path, "ended"));
        g_assert_true(client_reads(alice, path, HOLD, "Result", "expired"));
        g_assert_true(hold_is(root, rooted, "granted"));
        rig_configure("");
}

static void test_unattended_max(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;
        uint64_t requested;

        rig_configure("[Limits]\nHoldMaxSec=1h\n");
        path = hold_take_unattended(alice, 7200 * USEC_PER_SEC, "a{sv}", 0);
        requested = client_get_number(alice, path, HOLD, "RequestTimestamp", 't');
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "ExpireTimestamp", 't'), ==,
                         requested + 3600 * USEC_PER_SEC);
        hold_release(alice, path);
        rig_configure("");
}

static void test_wait_max(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *path = NULL, *rooted = NULL;
        _cleanup_close_ int a = -1, b = -1;

        rig_configure("[Limits]\nWaitMaxSec=200ms\n");
        rooted = hold_take(root, &b, "a{sv}", 2, BREAKPOINTS, "mode", "s", "exclusive");
        path = hold_take(alice, &a, "a{sv}", 2, BREAKPOINTS, "wait_usec", "t", UINT64_MAX);
        client_refused(alice, PERFALLOC_ERROR_TIMED_OUT, path, HOLD, "Wait", NULL);
        rig_configure("");
}

static void test_quota(void) {
        g_autoptr(Client) alice = client_new("alice"), again = client_new("alice"),
                          carol = client_new("carol");
        g_autofree char *first = NULL, *second = NULL, *third = NULL;

        rig_configure("[Limits]\nHoldsPerUser=2\n");
        first = hold_take_unattended(alice, 0, "a{sv}", 0);
        second = hold_take_unattended(again, 0, "a{sv}", 0);
        client_refused(alice, SD_BUS_ERROR_LIMITS_EXCEEDED, MANAGER, "Hold", "sa{sv}", "one more",
                       0);
        g_assert_nonnull(strstr(alice->refusal, "HoldsPerUser="));
        third = hold_take_unattended(carol, 0, "a{sv}", 0);
        hold_release(alice, first);
        g_free(first);
        first = hold_take_unattended(alice, 0, "a{sv}", 0);
        rig_configure("");
}

static void test_counter_quota(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;

        rig_configure("[Limits]\nCountersPerUser=2\n");
        path = counter_open(alice, "cpu-clock", "a{sv}", 1, "scope", "s", "cpu");
        client_refused(alice, SD_BUS_ERROR_LIMITS_EXCEEDED, MANAGER, "OpenCounters", "asa{sv}", 2,
                       "cpu-clock", "task-clock", 1, "scope", "s", "cpu");
        g_assert_nonnull(strstr(alice->refusal, "CountersPerUser="));
        g_assert_cmpuint(client_count(alice, "counter"), ==, 1);
        rig_configure("");
}

static void test_bad_settings(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;
        uint64_t requested;

        rig_configure("rubbish\n[Limits]\nHoldMaxSec=soon\nNoSuch=1\nHoldsPerUser=-1\n"
                      "[NoSuch]\nHoldMaxSec=1h\n[Limits]\nHoldMaxSec=2h\n");
        path = hold_take(alice, &lease, "a{sv}", 0);
        requested = client_get_number(alice, path, HOLD, "RequestTimestamp", 't');
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "ExpireTimestamp", 't'), ==,
                         requested + 7200 * USEC_PER_SEC);
        rig_configure("");
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/service/numbers-go-on-after-a-stop", test_numbers_after_stop);
        g_test_add_func("/service/numbers-go-on-after-a-kill", test_numbers_after_kill);
        g_test_add_func("/service/it-leaves-when-idle-and-numbers-go-on", test_idle_exit);
        g_test_add_func("/service/it-stays-while-a-counter-is-open", test_stays_while_open);
        g_test_add_func("/service/a-stop-by-descriptor-stays", test_a_stop_by_descriptor_stays);
        g_test_add_func("/service/holdmaxsec-ends-holds-of-ordinary-users", test_hold_max);
        g_test_add_func("/service/holdmaxsec-cuts-longer-lifetimes", test_unattended_max);
        g_test_add_func("/service/waitmaxsec-ends-waiting", test_wait_max);
        g_test_add_func("/service/holdsperuser-is-a-limit-of-each-user", test_quota);
        g_test_add_func("/service/a-call-beyond-countersperuser-opens-nothing", test_counter_quota);
        g_test_add_func("/service/bad-settings-are-ignored-and-good-ones-hold", test_bad_settings);
        return g_test_run();
}

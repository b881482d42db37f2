/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Leaving when idle: for good, soon, and not while somebody calls. */

#include "bus-util.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_gone(pid_t pid) {
        return kill(pid, 0) < 0;
}

/* A call that keeps a service, and that is on its way when the service gives its name back. */
static void test_leaving_is_for_good(void) {
        g_autoptr(Client) alice = NULL;
        g_autoptr(sd_bus_message) reply = NULL;
        uint64_t block;
        pid_t pid, bus;

        rig_configure("[Limits]\nIdleExitSec=1h\n");
        alice = client_new("alice");
        sd_bus_message_unref(client_call(alice, MANAGER, "HasSamplers", NULL));
        bus = bus_pid(alice);
        pid = service_pid();
        bus_check(kill(bus, SIGSTOP) < 0 ? -errno : 0, "stop the bus");
        block = client_send(alice, MANAGER, "BlockSamplers", NULL);
        bus_check(sd_bus_flush(alice->bus), "BlockSamplers");
        clock_forward_of(pid, 2 * 3600 * USEC_PER_SEC);
        await(service_number("ready") == 0);
        bus_check(kill(bus, SIGCONT) < 0 ? -errno : 0, "continue the bus");
        await(client_has_answer(alice, block));
        reply = client_receive(alice, block);
        await(is_gone(pid));
        rig_configure("");
}

/* The bus that does not answer, and calls under way, do not keep it. */
static void test_leaving_ends(void) {
        g_autoptr(Client) root = client_new("root");
        pid_t pid, bus = bus_pid(root);

        rig_configure("[Limits]\nIdleExitSec=1h\n");
        client_greet(root); /* earlier calls await nothing of the bus any more */
        pid = service_pid();
        bus_check(kill(bus, SIGSTOP) < 0 ? -errno : 0, "stop the bus");
        clock_forward_of(pid, 2 * 3600 * USEC_PER_SEC);
        await(service_number("ready") == 0);
        clock_forward_of(pid, 60 * USEC_PER_SEC);
        await(is_gone(pid));
        bus_check(kill(bus, SIGCONT) < 0 ? -errno : 0, "continue the bus");
        rig_configure("");
}

/* First calls, each of a new connection, as the service is about to leave. */
static void test_no_reply_is_lost(void) {
        enum { CALLS = 60, IDLE_MSEC = 100 };
        unsigned n_started = 0;
        pid_t last = 0;

        rig_configure("[Limits]\nIdleExitSec=100ms\n");
        for (int i = 0; i < CALLS; i++) {
                g_autoptr(Client) alice = client_new("alice");
                pid_t pid;

                sd_bus_message_unref(client_call(alice, MANAGER, "HasSamplers", NULL));
                pid = service_number("pid");
                n_started += pid != last;
                last = pid;
                g_usleep((gulong) g_random_int_range(IDLE_MSEC - 5, IDLE_MSEC + 10) * 1000);
        }
        g_test_message("%u services for %u calls", n_started, CALLS);
        g_assert_cmpuint(n_started, >, 1);
        rig_configure("");
}

/* Each keeps it for the whole time again, whoever calls. */
static void test_calls_keep_it(void) {
        g_autoptr(Client) alice = NULL;
        pid_t pid;

        rig_configure("[Limits]\nIdleExitSec=1h\n");
        alice = client_new("alice");
        sd_bus_message_unref(client_call(alice, MANAGER, "HasSamplers", NULL));
        pid = service_pid();
        for (int i = 0; i < 50; i++) {
                clock_forward_of(pid, 1800 * USEC_PER_SEC);
                sd_bus_message_unref(client_call(alice, MANAGER, "HasSamplers", NULL));
                g_assert_cmpint(service_pid(), ==, pid);
        }
        rig_configure("");
}

/* ---- monitors.d ---- */

#define MONITOR "/etc/perfalloc/monitors.d/reports.conf"

static unsigned n_reports(void) {
        g_autofree char *log = NULL;
        unsigned n = 0;

        g_assert_true(g_spawn_command_line_sync("service-log", &log, NULL, NULL, NULL));
        for (const char *p = log; (p = strstr(p, "Monitor reports: ")); p++)
                n++;
        return n;
}

/* A suspended machine, or a service that was stopped. */
static void test_reports_in_no_bursts(void) {
        static const char text[] = "[Monitor]\nEvents=cpu-clock\nInterval=1s\n";
        g_autoptr(Client) root = client_new("root");
        gint64 begin;
        unsigned before;
        pid_t pid;

        (void) g_mkdir_with_parents("/etc/perfalloc/monitors.d", 0755);
        g_assert_true(g_file_set_contents(MONITOR, text, -1, NULL));
        (void) chmod(MONITOR, 0644);
        rig_configure("");
        pid = service_pid();
        await(n_reports() > 0);
        begin = g_get_monotonic_time();
        before = n_reports();
        clock_forward_of(pid, 3600 * USEC_PER_SEC);
        await(n_reports() > before);
        for (int i = 0; i < 100; i++) /* the loop goes round in each */
                sd_bus_message_unref(client_call(root, MANAGER, "HasSamplers", NULL));
        g_assert_cmpint(n_reports() - before, <=,
                        2 + (g_get_monotonic_time() - begin) / G_USEC_PER_SEC);
        (void) unlink(MONITOR);
        rig_configure("");
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/idle/leaving-is-for-good", test_leaving_is_for_good);
        g_test_add_func("/idle/leaving-ends-without-the-bus", test_leaving_ends);
        g_test_add_func("/idle/no-reply-is-lost-on-the-way-out", test_no_reply_is_lost);
        g_test_add_func("/idle/calls-keep-it", test_calls_keep_it);
        g_test_add_func("/idle/reports-come-in-no-bursts", test_reports_in_no_bursts);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* State that the service crashes with, run after run, is set aside. */

#include "bus-util.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char *runtime_file(const char *name) {
        g_autofree char *pid = g_strdup_printf("/proc/%d/environ", service_pid()), *text = NULL;
        gsize n;

        g_assert_true(g_file_get_contents(pid, &text, &n, NULL));
        for (const char *p = text; p < text + n; p += strlen(p) + 1)
                if (g_str_has_prefix(p, "RUNTIME_DIRECTORY="))
                        return g_build_filename(strchr(p, '=') + 1, name, NULL);
        g_assert_not_reached();
}

/* Whether a crash of the process would be noted. A sanitizer catches the other signals itself. */
static bool is_watching(pid_t pid) {
        g_autofree char *path = g_strdup_printf("/proc/%d/status", pid), *text = NULL;
        const char *caught;

        if (!g_file_get_contents(path, &text, NULL, NULL))
                return false;
        caught = strstr(text, "SigCgt:");
        return caught &&
               g_ascii_strtoull(caught + strlen("SigCgt:"), NULL, 16) >> (SIGABRT - 1) & 1;
}

static void service_wanted_again(void) {
        g_autofree char *path =
                g_build_filename(g_getenv("PERFALLOC_RIG_DIR"), "state", "service.wanted", NULL);

        g_assert_true(g_file_set_contents(path, "again\n", -1, NULL));
}

static void forget_failures(void) {
        g_autofree char *path =
                g_build_filename(g_getenv("PERFALLOC_RIG_DIR"), "state", "service.failures", NULL);

        (void) unlink(path);
}

/* The service is started n times and ends by the signal while it restores, since the bus does not
 * answer. Returns when it was restored after that. */
static void crash_while_restoring(Client *c, unsigned n, int signo) {
        pid_t bus = bus_pid(c), pid = service_pid();

        bus_check(kill(bus, SIGSTOP) < 0 ? -errno : 0, "stop the bus");
        service_wanted_again();
        bus_check(kill(pid, SIGKILL) < 0 ? -errno : 0, "kill the service");
        while (n-- > 0) {
                pid_t last = pid;

                await((pid = service_number("pid")) != last && is_watching(pid));
                service_wanted_again();
                bus_check(kill(pid, signo) < 0 ? -errno : 0, "kill the service");
        }
        await(service_number("pid") != pid);
        bus_check(kill(bus, SIGCONT) < 0 ? -errno : 0, "continue the bus");
        await(service_number("ready") != 0);
        forget_failures();
}

static void test_after_three_crashes(void) {
        g_autoptr(Client) root = client_new("root");
        _cleanup_close_ int lease = -1;
        g_autofree char *hold = hold_take(root, &lease, "a{sv}", 1, BREAKPOINTS);
        g_autofree char *kept = runtime_file("state-set-aside"), *log = NULL;
        struct stat st;

        g_assert_true(hold_wait(root, hold));
        crash_while_restoring(root, 2, SIGABRT);
        g_assert_true(hold_is(root, hold, "granted"));
        crash_while_restoring(root, 3, SIGABRT);
        client_refused(root, SD_BUS_ERROR_UNKNOWN_OBJECT, hold, HOLD, "Release", NULL);
        g_assert_cmpint(stat(kept, &st), ==, 0);
        g_assert_cmpint(st.st_mode & 07777, ==, 0600);
        g_assert_cmpint(st.st_size, >, 0);
        g_assert_true(g_spawn_command_line_sync("service-log", &log, NULL, NULL, NULL));
        g_assert_nonnull(strstr(log, "has crashed 3 times while it restored its state"));
        g_assert_nonnull(strstr(log, "1 holds"));
}

/* Kills are no crashes, and what was restored once starts at nothing. */
static void test_kills_do_not_count(void) {
        g_autoptr(Client) root = client_new("root");
        _cleanup_close_ int lease = -1;
        g_autofree char *hold = hold_take(root, &lease, "a{sv}", 1, BREAKPOINTS);

        g_assert_true(hold_wait(root, hold));
        crash_while_restoring(root, 4, SIGKILL);
        crash_while_restoring(root, 2, SIGABRT);
        crash_while_restoring(root, 2, SIGABRT);
        g_assert_true(hold_is(root, hold, "granted"));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/set-aside/after-three-crashes", test_after_three_crashes);
        g_test_add_func("/set-aside/kills-do-not-count", test_kills_do_not_count);
        return g_test_run();
}

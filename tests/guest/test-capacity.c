/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The reported capacity of the PMU, against its real one. */

#include "foreigner.h"
#include "guest-util.h"

/* A property of texts, with commas between them. */
static char *pmu_texts(Client *c, const char *property) {
        g_auto(GStrv) texts = NULL;

        bus_check(sd_bus_get_property_strv(c->bus, PERFALLOC_BUS_NAME, PMU_PATH, PMU_FACE, property,
                                           NULL, &texts),
                  property);
        return texts ? g_strjoinv(",", texts) : g_strdup("");
}

static void test_counters(void) {
        g_autoptr(Client) bob = client_new("bob");
        g_autofree char *fixed = pmu_texts(bob, "Fixed"), *kernel = pmu_texts(bob, "Kernel"),
                        *probed = pmu_texts(bob, "Probed");

        g_assert_true(client_reads(bob, PMU_PATH, PMU_FACE, "Kind", "core"));
        g_assert_cmpstr(fixed, ==, "cycles");
        g_assert_cmpstr(kernel, ==, ""); /* there is no NMI watchdog here */
        g_assert_cmpstr(probed, ==, "instructions,cycles");
        g_assert_true(client_reads(bob, PMU_PATH, PMU_FACE, "Cpus", "0-1"));
        g_assert_cmpuint(client_get_number(bob, PMU_PATH, PMU_FACE, "Counters", 'u'), ==, GENERAL);
}

/* How many of a group the kernel accepts on an empty PMU. */
static unsigned group_accepted(EventKind kind) {
        int fds[COUNTERS + 2];
        unsigned n = 0;

        for (; n < G_N_ELEMENTS(fds); n++) {
                EventSpec e = { .kind = kind, .pid = -1, .cpu = 0 };

                fds[n] = event_open(&e, n > 0 ? fds[0] : -1);
                if (fds[n] < 0)
                        break;
        }
        g_assert_cmpint(fds[n], ==, -EINVAL);
        for (unsigned i = 0; i < n; i++)
                close_fd(fds[i]);
        return n;
}

static void test_kernel(void) {
        g_assert_cmpuint(group_accepted(CYCLES), ==, COUNTERS);
        g_assert_cmpuint(group_accepted(INSTRUCTIONS), ==, GENERAL);
        g_assert_cmpuint(free_on(0), ==, COUNTERS);
        g_assert_cmpuint(free_on(1), ==, COUNTERS);
}

static void test_free_beside(gconstpointer pinned) {
        g_autoptr(Client) root = client_new("root");

        for (unsigned n = 0; n <= COUNTERS; n++) {
                Stranger s = { .cpu = 0, .n = n, .pinned = GPOINTER_TO_INT(pinned) };
                g_autoptr(Actor) a = stranger_new(&s);

                g_assert_cmpuint(free_on(0), ==, COUNTERS - n);
                /* the first of them is in the counter that is of no use to others */
                g_assert_cmpuint(client_probe(root, 0), ==, MIN(GENERAL, COUNTERS - n));
                g_assert_cmpuint(client_probe(root, 1), ==, GENERAL);
                /* flexible ones share for the moments of looking */
                if (n > 0)
                        stranger_assert_alive(a, s.pinned);
        }
}

static void test_free_beside_service(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *first = NULL, *second = NULL;

        first = counter_open(alice, "cycles", "a{sv}", 2, "scope", "s", "cpu", "cpus", "s", "1");
        second = counter_open(alice, "instructions", "a{sv}", 2, "scope", "s", "cpu", "cpus", "s",
                              "1");
        g_assert_cmpuint(client_probe(root, 0), ==, GENERAL);
        g_assert_cmpuint(client_probe(root, 1), ==, GENERAL - 1);
        counter_do(alice, second, "Close");
        g_assert_cmpuint(client_probe(root, 1), ==, GENERAL);
}

static void test_leaves_nothing(void) {
        g_autoptr(Client) root = client_new("root");
        unsigned before;

        (void) client_probe(root, 0);
        before = service_descriptors();
        for (unsigned i = 0; i < 20; i++)
                (void) client_probe(root, 0);
        g_assert_cmpuint(service_descriptors(), ==, before);
        g_assert_cmpuint(free_on(0), ==, COUNTERS);
        g_assert_cmpuint(free_on(1), ==, COUNTERS);
}

static void run(const char *command) {
        int status;

        g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, &status, NULL));
        g_assert_cmpint(status, ==, 0);
}

#define DROP_IN "/run/systemd/system/perfallocd.service.d"

static void file_write(const char *path, const char *text) {
        g_autoptr(GError) error = NULL;

        (void) g_file_set_contents(path, text, -1, &error);
        g_assert_no_error(error);
}

/* A detector that counts nothing: the sysctl says that it runs, and all is free. */
static void test_buddies(void) {
        static const Stranger everywhere = { .cpu = -1, .n = COUNTERS };
        g_autoptr(Client) root = client_new("root");
        g_autoptr(Actor) stranger = NULL;
        g_autofree char *before = NULL, *after = NULL;

        g_assert_cmpint(g_mkdir_with_parents(DROP_IN, 0755), ==, 0);
        file_write("/run/watchdog", "1\n");
        file_write(DROP_IN "/watchdog.conf",
                   "[Service]\nBindReadOnlyPaths=/run/watchdog:/proc/sys/kernel/nmi_watchdog\n");
        run("systemctl daemon-reload");
        run("systemctl stop perfallocd.service");
        before = pmu_texts(root, "Kernel");
        g_assert_cmpstr(before, ==, "");
        stranger = stranger_new(&everywhere);
        service_kill(root);
        after = pmu_texts(root, "Kernel");
        g_assert_cmpstr(after, ==, "");
        g_assert_no_errno(unlink(DROP_IN "/watchdog.conf"));
        run("systemctl daemon-reload");
        run("systemctl stop perfallocd.service");
}

static uint64_t breakpoints_of_service(void) {
        g_autoptr(Client) bob = NULL;

        run("systemctl stop perfallocd.service");
        bob = client_new("bob");
        return client_get_number(bob, PERFALLOC_OBJECT_PATH "/pmu/breakpoint", PMU_FACE, "Counters",
                                 'u');
}

/* Those that a stranger has on every CPU while the service starts are counted in. */
static void test_breakpoints(void) {
        uint64_t slots = breakpoints_of_service();
        g_autoptr(Actor) stranger = foreigner_new();

        g_assert_cmpuint(slots, >, 1);
        g_assert_cmpuint(breakpoints_of_service(), ==, slots);
}

int main(int argc, char **argv) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/capacity/the-service-says-six-general-ones", test_counters);
        g_test_add_func("/capacity/the-kernel-has-seven-for-cycles-and-six-for-instructions",
                        test_kernel);
        g_test_add_data_func("/capacity/probe-tells-what-flexible-strangers-leave",
                             GINT_TO_POINTER(false), test_free_beside);
        g_test_add_data_func("/capacity/probe-tells-what-pinned-strangers-leave",
                             GINT_TO_POINTER(true), test_free_beside);
        g_test_add_func("/capacity/probe-tells-what-clients-of-the-service-leave",
                        test_free_beside_service);
        g_test_add_func("/capacity/probe-leaves-nothing-behind", test_leaves_nothing);
        g_test_add_func("/capacity/a-detector-that-counts-nothing-is-known-after-a-restart",
                        test_buddies);
        g_test_add_func("/capacity/breakpoints-of-strangers-are-counted-in", test_breakpoints);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What goes on over a restart of the service where not all can be kept: KeptDescriptors=, and few
 * descriptors for the service. */

#include "bus-util.h"
#include "restart-util.h"

#include <fcntl.h>

/* One descriptor. */
#define ON_ONE "scope", "s", "cpu", "cpus", "s", "0"

#define FEW_DESCRIPTORS "300"
#define TOO_FEW         "150" /* for the existing ones */

#define EACH 60

/* ---- how much is kept ---- */

static char *small_open(Client *c) {
        return counter_open(c, "page-faults", "a{sv}", 2, ON_ONE);
}

static void test_up_to_the_limit_they_are_kept(const void *restart) {
        g_autoptr(Client) alice = NULL;
        g_autofree char *persistent = NULL, *monitor = NULL, *later = NULL;
        char *counters[4];
        unsigned n_told;

        rig_configure("[Limits]\nKeptDescriptors=2\n");
        alice = client_new("alice");
        for (size_t i = 0; i < G_N_ELEMENTS(counters); i++)
                counters[i] = small_open(alice);
        persistent = counter_open(alice, "page-faults", "a{sv}", 3, ON_ONE, "persistent", "b", 1);
        monitor = counter_open(alice, "page-faults", "a{sv}", 3, ON_ONE, "role", "s", "monitor");
        n_told = service_said("have ended: 2.");
        for (int round = 0; round < 3; round++) {
                rig(restart, NULL);
                for (size_t i = 0; i < G_N_ELEMENTS(counters); i++)
                        g_assert_true(client_finds(alice, counters[i], COUNTER) == (i < 2));
                g_assert_true(client_finds(alice, persistent, COUNTER));
                g_assert_true(client_finds(alice, monitor, COUNTER));
                g_assert_cmpuint(service_said("have ended: 2."), ==, n_told + 1);
        }
        counter_do(alice, counters[0], "Close");
        later = small_open(alice);
        rig(restart, NULL);
        g_assert_true(client_finds(alice, counters[1], COUNTER));
        g_assert_true(client_finds(alice, later, COUNTER));
        g_assert_cmpuint(service_said("have ended: 2."), ==, n_told + 1);
        for (size_t i = 0; i < G_N_ELEMENTS(counters); i++)
                g_free(counters[i]);
        counter_do(alice, persistent, "Close");
        client_free(alice);
        alice = NULL;
        rig_configure("");
}

/* At the limit who has less than an equal share takes the place of another's latest counters. */
static void test_each_user_has_a_share(const void *restart) {
        g_autoptr(Client) alice = NULL, root = NULL;
        char *alices[4], *roots[3];
        unsigned n_told;

        rig_configure("[Limits]\nKeptDescriptors=4\n");
        alice = client_new("alice");
        root = client_new("root");
        for (size_t i = 0; i < G_N_ELEMENTS(alices); i++)
                alices[i] = small_open(alice);
        for (size_t i = 0; i < G_N_ELEMENTS(roots); i++)
                roots[i] = small_open(root);
        n_told = service_said("have ended: 3.");
        for (int round = 0; round < 2; round++) {
                rig(restart, NULL);
                for (size_t i = 0; i < G_N_ELEMENTS(alices); i++)
                        g_assert_true(client_finds(alice, alices[i], COUNTER) == (i < 2));
                for (size_t i = 0; i < G_N_ELEMENTS(roots); i++)
                        g_assert_true(client_finds(root, roots[i], COUNTER) == (i < 2));
                g_assert_cmpuint(service_said("have ended: 3."), ==, n_told + 1);
        }
        for (size_t i = 0; i < G_N_ELEMENTS(alices); i++)
                g_free(alices[i]);
        for (size_t i = 0; i < G_N_ELEMENTS(roots); i++)
                g_free(roots[i]);
        client_free(alice);
        client_free(root);
        alice = root = NULL;
        rig_configure("");
}

/* From the grant to the end. */
static void test_those_of_holders_are_kept(const void *restart) {
        g_autoptr(Client) alice = NULL, root = NULL;
        g_autofree char *counter = NULL, *other = NULL, *hold = NULL;
        unsigned n_told;
        int lease;

        rig_configure("[Limits]\nKeptDescriptors=0\n");
        alice = client_new("alice");
        root = client_new("root");
        counter = small_open(alice);
        other = small_open(root);
        hold = hold_take(alice, &lease, "a{sv}", 1, "pmus", "as", 1, "software");
        (void) hold_wait(alice, hold);
        for (int round = 0; round < 2; round++) {
                rig(restart, NULL);
                g_assert_true(hold_is(alice, hold, "granted"));
                g_assert_true(client_finds(alice, counter, COUNTER));
                g_assert_false(client_finds(root, other, COUNTER));
        }
        n_told = service_said("have ended: 1.");
        close_fd(lease);
        await(hold_is(alice, hold, "ended"));
        g_assert_true(client_finds(alice, counter, COUNTER));
        rig(restart, NULL);
        g_assert_false(client_finds(alice, counter, COUNTER));
        g_assert_cmpuint(service_said("have ended: 1."), ==, n_told + 1);
        client_free(alice);
        client_free(root);
        alice = root = NULL;
        rig_configure("");
}

/* ---- few descriptors ---- */

/* Opens counters until the service is at its limit. */
static unsigned fill(Client *c) {
        unsigned n = 0;

        for (;; n++) {
                g_autoptr(sd_bus_message) answer = client_receive(
                        c, client_send(c, MANAGER, "OpenCounters", "asa{sv}", 1, "page-faults", 3,
                                       ON_ONE, "persistent", "b", 1));
                const sd_bus_error *error = sd_bus_message_get_error(answer);

                if (!error)
                        continue;
                g_assert_cmpstr(error->name, ==, PERFALLOC_ERROR_TOO_MANY_DESCRIPTORS);
                return n;
        }
}

/* Stored descriptors are in flight, and count against the user's limit (unix(7), ETOOMANYREFS). In
 * a restart each is in flight twice, which does not fit here. */
static void test_with_few_descriptors_all_go_on(const void *restart) {
        g_autoptr(Client) root = NULL;
        unsigned n;

        rig("service-stop && service-start PERFALLOC_RIG_NOFILE=" FEW_DESCRIPTORS, NULL);
        root = client_new("root");
        n = fill(root);
        g_assert_cmpuint(2 * n, >, 300);
        for (int round = 0; round < 3; round++) {
                rig(restart, NULL);
                g_assert_cmpuint(client_count(root, "counter"), ==, n);
        }
        rig("service-stop && service-start", NULL);
}

/* The lease of a monitor, or the stream of a sampler. */
static int make(Client *c, sd_bus_message *call) {
        g_autoptr(sd_bus_message) owned = call, reply = client_call_message(c, owned);
        const char *path;
        int fd;

        g_assert_cmpint(sd_bus_message_read(reply, "oh", &path, &fd), >, 0);
        return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static int register_monitor(Client *c) {
        sd_bus_message *m = client_message(c, MANAGER, "RegisterMonitor");

        g_assert_cmpint(
                sd_bus_message_append(m, "sa{sv}", "monitor", 1, "pmus", "as", 1, "software"), >=,
                0);
        return make(c, m);
}

static int create_sampler(Client *c, const char *counter) {
        sd_bus_message *m = client_message(c, MANAGER, "CreateSampler");

        g_assert_cmpint(sd_bus_message_append(m, "aota{sv}", 1, counter, 3600 * USEC_PER_SEC, 0),
                        >=, 0);
        return make(c, m);
}

/* What comes last in a restart finds no room beside what was there before. It is stored when that
 * is gone, so that the next restart finds it. */
static void test_with_few_descriptors_samplers_and_monitors_go_on(const void *restart) {
        g_autoptr(Client) root = NULL;
        g_autofree char *counter = NULL;
        int leases[EACH], streams[EACH];

        rig("service-stop && service-start PERFALLOC_RIG_NOFILE=" FEW_DESCRIPTORS, NULL);
        root = client_new("root");
        counter = small_open(root);
        for (unsigned i = 0; i < EACH; i++) {
                streams[i] = create_sampler(root, counter); /* two descriptors are stored */
                leases[i] = register_monitor(root);
        }
        for (int round = 0; round < 3; round++) {
                rig(restart, NULL);
                g_assert_cmpuint(client_count(root, "sampler"), ==, EACH);
                g_assert_cmpuint(client_count(root, "monitor"), ==, EACH);
        }
        for (unsigned i = 0; i < EACH; i++) {
                close_fd(streams[i]);
                close_fd(leases[i]);
        }
        rig("service-stop && service-start", NULL);
}

/* If fewer descriptors are allowed than before, some counters end. Leases do not, and others are
 * served. */
static void test_with_too_few_descriptors_some_end(const void *restart) {
        g_autoptr(Client) root = NULL, alice = NULL;
        g_autofree char *hold = NULL;
        unsigned n, n_left, n_told = service_said("are left out");
        int lease;

        rig("service-stop && service-start PERFALLOC_RIG_NOFILE=" FEW_DESCRIPTORS, NULL);
        root = client_new("root");
        alice = client_new("alice");
        n = fill(root);
        hold = hold_take(alice, &lease, "a{sv}", 1, BREAKPOINTS);
        (void) hold_wait(alice, hold);
        rig("sed -zi s/NOFILE=" FEW_DESCRIPTORS "/NOFILE=" TOO_FEW
            "/ $PERFALLOC_RIG_DIR/state/service.environment",
            NULL);
        for (int round = 0; round < 3; round++) {
                rig(restart, NULL);
                g_assert_true(hold_is(alice, hold, "granted"));
                if (round == 0)
                        n_left = client_count(root, "counter");
                g_assert_cmpuint(client_count(root, "counter"), ==, n_left);
        }
        g_assert_cmpuint(n_left, >, 0);
        g_assert_cmpuint(n_left, <, n);
        g_assert_cmpuint(service_said("are left out"), ==, n_told + 1);
        close_fd(lease);
        await(hold_is(alice, hold, "ended"));
        rig("service-stop && service-start", NULL);
}

int main(int argc, char *argv[]) {
        static const RestartTest tests[] = {
                { "up-to-the-limit-they-are-kept", test_up_to_the_limit_they_are_kept },
                { "each-user-has-a-share", test_each_user_has_a_share },
                { "those-of-holders-are-kept", test_those_of_holders_are_kept },
                { "with-few-descriptors-all-go-on", test_with_few_descriptors_all_go_on },
                { "with-few-descriptors-samplers-and-monitors-go-on",
                  test_with_few_descriptors_samplers_and_monitors_go_on },
                { "with-too-few-descriptors-some-end", test_with_too_few_descriptors_some_end },
        };

        g_test_init(&argc, &argv, NULL);
        restart_tests_add(tests, G_N_ELEMENTS(tests));
        return g_test_run();
}

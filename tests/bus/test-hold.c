/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Holds: which may exist side by side, how they end, what can be read of them afterwards, and by
 * whom. */

#include "bus-util.h"

/* Obstacles are named by pid; all clients of this program have the same. */
static void assert_busy(Client *c, const char *mode, const char *words) {
        g_autofree char *pid = g_strdup_printf("pid %d", (int) getpid());

        client_refused(c, PERFALLOC_ERROR_BUSY, MANAGER, "Hold", "sa{sv}", "in vain", 2,
                       BREAKPOINTS, "mode", "s", mode);
        g_assert_nonnull(strstr(c->refusal, pid));
        g_assert_nonnull(strstr(c->refusal, words));
}

static void test_shared(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *first = NULL, *second = NULL, *third = NULL;
        _cleanup_close_ int a = -1, b = -1, c = -1;

        first = hold_take(alice, &a, "a{sv}", 1, BREAKPOINTS);
        second = hold_take(root, &b, "a{sv}", 1, BREAKPOINTS);
        third = hold_take(alice, &c, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(alice, first));
        g_assert_true(hold_wait(root, second));
        g_assert_true(hold_wait(alice, third));
}

static void test_exclusive_against_shared(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 1, BREAKPOINTS);
        assert_busy(root, "exclusive", "shared");
        g_assert_nonnull(strstr(root->refusal, "uid 2001"));
}

static void test_shared_against_exclusive(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 2, BREAKPOINTS, "mode", "s", "exclusive");
        assert_busy(root, "shared", "exclusive");
}

static void test_exclusive_against_itself(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 2, BREAKPOINTS, "mode", "s", "exclusive");
        assert_busy(alice, "exclusive", "exclusive");
        assert_busy(alice, "shared", "exclusive");
}

static void test_other_cpus(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *first = NULL, *second = NULL;
        _cleanup_close_ int a = -1, b = -1;

        if (n_cpus() < 2) {
                g_test_skip("one CPU only");
                return;
        }
        first = hold_take(alice, &a, "a{sv}", 3, BREAKPOINTS, "mode", "s", "exclusive", "cpus", "s",
                          "0");
        second = hold_take(root, &b, "a{sv}", 3, BREAKPOINTS, "mode", "s", "exclusive", "cpus", "s",
                           "1");
        g_assert_true(hold_wait(alice, first));
        g_assert_true(hold_wait(root, second));
}

static void test_properties(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(sd_bus_message) reply = NULL;
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;
        uint64_t before = (uint64_t) g_get_real_time(), requested, granted;
        const char *pmu;

        path = hold_take(alice, &lease, "a{sv}", 4, BREAKPOINTS, "cpus", "s", "0", "mode", "s",
                         "exclusive", "wait_usec", "t", UINT64_C(1000000));
        g_assert_true(hold_wait(alice, path));
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "Uid", 'u'), ==, user_id("alice"));
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "Pid", 'u'), ==, getpid());
        g_assert_true(client_reads(alice, path, HOLD, "Reason", "a test"));
        g_assert_true(client_reads(alice, path, HOLD, "Cpus", "0"));
        g_assert_true(client_reads(alice, path, HOLD, "Mode", "exclusive"));
        g_assert_true(client_reads(alice, path, HOLD, "Result", ""));
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "Counters", 'u'), ==, 0);
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "Unattended", 'b'), ==, 0);
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "Confirmed", 'b'), ==, 1);
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "QueuePosition", 'u'), ==, 0);
        requested = client_get_number(alice, path, HOLD, "RequestTimestamp", 't');
        granted = client_get_number(alice, path, HOLD, "GrantTimestamp", 't');
        g_assert_cmpuint(requested, >=, before);
        g_assert_cmpuint(granted, >=, requested);
        g_assert_cmpuint(granted, <=, (uint64_t) g_get_real_time());
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "LatencyUSec", 't'), >, 0);
        reply = client_call(alice, path, "org.freedesktop.DBus.Properties", "Get", "ss", HOLD,
                            "Pmus");
        g_assert_cmpint(sd_bus_message_read(reply, "v", "as", 1, &pmu), >, 0);
        g_assert_cmpstr(pmu, ==, "breakpoint");
}

/* Nobody is short of these. */
static void test_number_of_unlimited(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(sd_bus_message) m = NULL;
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;
        const char *pmu;
        uint32_t n;

        path = hold_take(alice, &lease, "a{sv}", 2, "pmus", "as", 1, "software", "counters", "u",
                         3);
        g_assert_true(hold_wait(alice, path));
        m = client_get_variant(alice, path, HOLD, "Promised", "a(suas)");
        g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "(suas)"), >, 0);
        g_assert_cmpint(sd_bus_message_enter_container(m, 'r', "suas"), >, 0);
        g_assert_cmpint(sd_bus_message_read(m, "su", &pmu, &n), >, 0);
        g_assert_cmpstr(pmu, ==, "software");
        g_assert_cmpuint(n, ==, 3);
}

static bool has_core_pmu(void) {
        return g_file_test("/sys/bus/event_source/devices/cpu", G_FILE_TEST_EXISTS) ||
               g_file_test("/sys/bus/event_source/devices/cpu_core", G_FILE_TEST_EXISTS);
}

/* Nothing was asked for: the counters of the core PMU are held, and nothing where there is none. */
static void test_empty_scope(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(sd_bus_message) reply = NULL;
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 0);
        g_assert_true(hold_wait(alice, path));
        g_assert_true(hold_is(alice, path, "granted"));
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "Confirmed", 'b'), ==, 1);
        reply = client_call(alice, path, "org.freedesktop.DBus.Properties", "Get", "ss", HOLD,
                            "Pmus");
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'v', "as"), >, 0);
        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "s"), >, 0);
        g_assert_cmpint(sd_bus_message_at_end(reply, false), ==, !has_core_pmu());
}

/* ---- unattended ---- */

static void test_expiry(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = NULL;
        uint64_t requested, expires;

        path = hold_take_unattended(root, 300 * USEC_PER_MSEC, "a{sv}", 1, BREAKPOINTS);
        requested = client_get_number(root, path, HOLD, "RequestTimestamp", 't');
        expires = client_get_number(root, path, HOLD, "ExpireTimestamp", 't');
        g_assert_cmpuint(expires, ==, requested + 300 * USEC_PER_MSEC);
        g_assert_true(hold_wait(root, path));
        await(hold_is(root, path, "ended"));
        g_assert_cmpuint((uint64_t) g_get_real_time(), >=, expires);
        g_assert_true(client_reads(root, path, HOLD, "Result", "expired"));
}

static void test_unattended_outlives_client(void) {
        g_autoptr(Client) alice = client_new("alice"), again = client_new("alice");
        g_autofree char *path = NULL;

        path = hold_take_unattended(alice, 0, "a{sv}", 1, BREAKPOINTS);
        g_assert_cmpuint(client_get_number(alice, path, HOLD, "Unattended", 'b'), ==, 1);
        g_assert_cmpuint(client_get_number(again, path, HOLD, "ExpireTimestamp", 't'), >, 0);
        client_free(TAKE_PTR(alice));
        g_assert_true(hold_wait(again, path));
        hold_release(again, path);
        g_assert_true(client_reads(again, path, HOLD, "Result", "released"));
}

static void test_root_never_expires(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = NULL;

        path = hold_take_unattended(root, 0, "a{sv}", 0);
        g_assert_cmpuint(client_get_number(root, path, HOLD, "ExpireTimestamp", 't'), ==, 0);
        hold_release(root, path);
}

static void test_revoked(void) {
        g_autoptr(Client) alice = client_new("alice"), root = client_new("root");
        g_autofree char *path = NULL;

        path = hold_take_unattended(alice, 0, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(alice, path));
        hold_release(root, path);
        g_assert_true(client_reads(alice, path, HOLD, "Result", "revoked"));
}

/* ---- ended holds ---- */

static void test_ended_answers(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *path = NULL;

        path = hold_take_unattended(alice, 0, "a{sv}", 0);
        g_assert_true(hold_wait(alice, path));
        hold_release(alice, path);
        g_assert_true(hold_is(alice, path, "ended"));
        client_refused(alice, PERFALLOC_ERROR_ENDED, path, HOLD, "Wait", NULL);
        client_refused(alice, PERFALLOC_ERROR_ENDED, path, HOLD, "Release", NULL);
}

static void test_ended_limit(void) {
        enum { N = 70, READABLE = 64 };
        g_autoptr(Client) alice = client_new("alice");
        g_autofree char *first = NULL, *second = NULL;

        for (int i = 0; i < N; i++) {
                g_autofree char *path = NULL;

                path = hold_take_unattended(alice, 0, "a{sv}", 0);
                hold_release(alice, path);
                if (i == N - READABLE - 1)
                        first = TAKE_PTR(path);
                else if (i == N - READABLE)
                        second = TAKE_PTR(path);
        }
        g_assert_false(client_finds(alice, first, HOLD));
        g_assert_true(client_finds(alice, second, HOLD));
}

static void test_ended_goes(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *path = NULL;

        path = hold_take_unattended(root, 0, "a{sv}", 0);
        hold_release(root, path);
        service_clock_forward(9 * USEC_PER_SEC);
        g_assert_true(client_finds(root, path, HOLD));
        service_clock_forward(USEC_PER_SEC);
        await(!client_finds(root, path, HOLD));
        client_refused(root, SD_BUS_ERROR_UNKNOWN_OBJECT, path, HOLD, "Wait", NULL);
}

/* ---- others ---- */

static void test_not_owner(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 0);
        client_refused(bob, PERFALLOC_ERROR_NOT_OWNER, path, HOLD, "Release", NULL);
        client_refused(bob, PERFALLOC_ERROR_NOT_OWNER, path, HOLD, "Wait", NULL);
        g_assert_true(hold_wait(alice, path));
}

static void test_owner_elsewhere(void) {
        g_autoptr(Client) alice = client_new("alice"), again = client_new("alice");
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 0);
        g_assert_true(hold_wait(again, path));
        hold_release(again, path);
        g_assert_true(client_reads(alice, path, HOLD, "Result", "released"));
}

static void test_reason(void) {
        g_autoptr(Client) alice = client_new("alice"), again = client_new("alice"),
                          bob = client_new("bob"), root = client_new("root");
        g_autofree char *path = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 0);
        g_assert_true(client_reads(alice, path, HOLD, "Reason", "a test"));
        g_assert_true(client_reads(again, path, HOLD, "Reason", "a test"));
        g_assert_true(client_reads(root, path, HOLD, "Reason", "a test"));
        g_assert_true(client_reads(bob, path, HOLD, "Reason", "a test"));
        g_assert_true(hold_wait(alice, path));
        g_assert_true(hold_is(bob, path, "granted"));
}

static char *get_all_reason(Client *c, const char *path) {
        g_autoptr(sd_bus_message) reply =
                client_call(c, path, "org.freedesktop.DBus.Properties", "GetAll", "s", HOLD);

        return properties_read(reply, "Reason");
}

static char *managed_reason(Client *c, const char *wanted) {
        g_autoptr(sd_bus_message) reply =
                client_call(c, PERFALLOC_OBJECT_PATH, "org.freedesktop.DBus.ObjectManager",
                            "GetManagedObjects", NULL);
        char *found = NULL;
        const char *path;

        g_assert_cmpint(sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}"), >, 0);
        while (sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}") > 0) {
                g_assert_cmpint(sd_bus_message_read(reply, "o", &path), >, 0);
                if (strcmp(path, wanted) == 0)
                        found = object_read(reply, HOLD, "Reason");
                else
                        g_assert_cmpint(sd_bus_message_skip(reply, "a{sa{sv}}"), >=, 0);
                g_assert_cmpint(sd_bus_message_exit_container(reply), >=, 0);
        }
        return found;
}

static void test_reason_in_all(void) {
        g_autoptr(Client) alice = client_new("alice"), bob = client_new("bob");
        g_autofree char *path = NULL, *own = NULL, *others = NULL, *listed = NULL, *unlisted = NULL;
        _cleanup_close_ int lease = -1;

        path = hold_take(alice, &lease, "a{sv}", 0);
        own = get_all_reason(alice, path);
        others = get_all_reason(bob, path);
        listed = managed_reason(alice, path);
        unlisted = managed_reason(bob, path);
        g_assert_cmpstr(own, ==, "a test");
        g_assert_cmpstr(others, ==, "a test");
        g_assert_cmpstr(listed, ==, "a test");
        g_assert_cmpstr(unlisted, ==, "a test");
}

/* The next signal of this name. */
static sd_bus_message *signal_next(Client *c, const char *member) {
        sd_bus_message *m;

        while ((m = client_next(c, AWAIT_SEC * G_USEC_PER_SEC))) {
                if (sd_bus_message_is_signal(m, NULL, member))
                        return m;
                sd_bus_message_unref(m);
        }
        g_error("%s never came", member);
}

static void test_signals_tell_the_reason(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(sd_bus_message) added = NULL;
        g_autofree char *path = NULL, *reason = NULL;
        _cleanup_close_ int lease = -1;
        const char *which;

        client_watch(alice);
        path = hold_take(alice, &lease, "a{sv}", 0);
        added = signal_next(alice, "InterfacesAdded");
        g_assert_cmpint(sd_bus_message_read(added, "o", &which), >, 0);
        g_assert_cmpstr(which, ==, path);
        reason = object_read(added, HOLD, "Reason");
        g_assert_cmpstr(reason, ==, "a test");
}

static void test_removed(void) {
        g_autoptr(Client) alice = client_new("alice");
        g_autoptr(sd_bus_message) removed = NULL;
        g_autofree char *first = NULL;
        const char *which, *interface;

        first = hold_take_unattended(alice, 0, "a{sv}", 0);
        hold_release(alice, first);
        client_watch(alice);
        for (int i = 0; i < 64; i++) {
                g_autofree char *path = NULL;

                path = hold_take_unattended(alice, 0, "a{sv}", 0);
                hold_release(alice, path);
        }
        do {
                sd_bus_message_unref(removed);
                removed = signal_next(alice, "InterfacesRemoved");
                g_assert_cmpint(sd_bus_message_read(removed, "o", &which), >, 0);
        } while (strcmp(which, first) != 0);
        g_assert_cmpint(sd_bus_message_enter_container(removed, 'a', "s"), >, 0);
        while (sd_bus_message_read(removed, "s", &interface) > 0)
                if (strcmp(interface, HOLD) == 0)
                        return;
        g_assert_not_reached();
}

/* The next value of Yielding that is told. */
static bool yielding_told(Client *c) {
        g_autoptr(sd_bus_message) m = NULL;
        const char *interface, *name;
        int yielding;

        do {
                sd_bus_message_unref(m);
                m = signal_next(c, "PropertiesChanged");
                g_assert_cmpint(sd_bus_message_read(m, "s", &interface), >, 0);
        } while (strcmp(interface, PERFALLOC_MANAGER_INTERFACE) != 0);
        g_assert_cmpint(sd_bus_message_enter_container(m, 'a', "{sv}"), >, 0);
        g_assert_cmpint(sd_bus_message_read(m, "{sv}", &name, "b", &yielding), >, 0);
        g_assert_cmpstr(name, ==, "Yielding");
        return yielding;
}

static void hold_briefly(Client *c) {
        g_autofree char *path = NULL;
        int lease;

        path = hold_take(c, &lease, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(hold_wait(c, path));
        hold_release(c, path);
        close_fd(lease);
}

/* Each of these is two entries, and none of another user's is lost. */
static void test_journal(void) {
        g_autoptr(Client) carol = client_new("carol"), alice = client_new("alice");
        unsigned carols = service_said(" of uid 2003 "), alices = service_said(" of uid 2001 ");

        for (int i = 0; i < 100; i++)
                hold_briefly(carol);
        g_assert_cmpuint(service_said(" of uid 2003 ") - carols, >=, 64);
        g_assert_cmpuint(service_said(" of uid 2003 ") - carols, <, 100);
        hold_briefly(alice);
        g_assert_cmpuint(service_said(" of uid 2001 "), ==, alices + 2);
        g_assert_cmpuint(service_said("entries about holds were left out"), >, 0);
}

static void test_yielding(void) {
        g_autoptr(Client) root = client_new("root");
        g_autofree char *first = NULL, *second = NULL;

        g_assert_cmpuint(client_get_number(root, MANAGER, "Yielding", 'b'), ==, 0);
        client_watch(root);
        first = hold_take_unattended(root, 0, "a{sv}", 1, BREAKPOINTS);
        g_assert_true(yielding_told(root));
        second = hold_take_unattended(root, 0, "a{sv}", 1, BREAKPOINTS);
        (void) hold_wait(root, second);
        hold_release(root, first);
        g_assert_cmpuint(client_get_number(root, MANAGER, "Yielding", 'b'), ==, 1);
        hold_release(root, second);
        g_assert_false(yielding_told(root));
        g_assert_cmpuint(client_get_number(root, MANAGER, "Yielding", 'b'), ==, 0);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        /* first, for the others make entries too */
        g_test_add_func("/hold/a-user-who-holds-without-end-does-not-fill-the-journal",
                        test_journal);
        g_test_add_func("/hold/shared-ones-are-held-side-by-side", test_shared);
        g_test_add_func("/hold/exclusive-is-busy-beside-shared", test_exclusive_against_shared);
        g_test_add_func("/hold/shared-is-busy-beside-exclusive", test_shared_against_exclusive);
        g_test_add_func("/hold/exclusive-keeps-out-its-own-user", test_exclusive_against_itself);
        g_test_add_func("/hold/exclusive-ones-of-other-cpus-are-held-side-by-side",
                        test_other_cpus);
        g_test_add_func("/hold/properties-say-what-was-asked-and-granted", test_properties);
        g_test_add_func("/hold/a-number-of-what-is-unlimited-is-promised",
                        test_number_of_unlimited);
        g_test_add_func("/hold/the-default-is-the-core-pmus-counters", test_empty_scope);
        g_test_add_func("/hold/unattended-expires", test_expiry);
        g_test_add_func("/hold/unattended-outlives-its-client", test_unattended_outlives_client);
        g_test_add_func("/hold/unattended-of-root-never-expires", test_root_never_expires);
        g_test_add_func("/hold/released-by-root-is-revoked", test_revoked);
        g_test_add_func("/hold/ended-answers-at-once", test_ended_answers);
        g_test_add_func("/hold/ended-ones-of-a-user-are-kept-up-to-64", test_ended_limit);
        g_test_add_func("/hold/ended-goes-after-ten-seconds", test_ended_goes);
        g_test_add_func("/hold/others-are-not-its-owner", test_not_owner);
        g_test_add_func("/hold/its-user-owns-it-from-every-connection", test_owner_elsewhere);
        g_test_add_func("/hold/reason-is-for-everybody", test_reason);
        g_test_add_func("/hold/reason-is-listed-for-everybody", test_reason_in_all);
        g_test_add_func("/hold/signals-tell-the-reason", test_signals_tell_the_reason);
        g_test_add_func("/hold/the-object-manager-tells-when-it-goes", test_removed);
        g_test_add_func("/hold/yielding-is-true-while-one-is-granted", test_yielding);
        return g_test_run();
}

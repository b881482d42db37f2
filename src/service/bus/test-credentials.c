/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/bus/credentials.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "service/bus/test-message.h"

/* As a bus with ProcessFD (D-Bus 1.15.8) replies; far_end stands in for the pidfd. */
static sd_bus_message *reply_new(const Desert *d) {
        static const gid_t gids[] = { 7, 8 };
        sd_bus_message *m = message_new(d);

        message_open_options(m);
        message_option(m, "UnixUserID", "u", 1000);
        message_option(m, "ProcessID", "u", 42);
        message_option(m, "UnixGroupIDs", "au", 2, gids[0], gids[1]);
        message_option(m, "ProcessFD", "h", d->far_end);
        message_option(m, "LinuxSecurityLabel", "ay", 1, 0);
        return message_close_options(m);
}

static void test_what_the_bus_knows_is_read(Desert *d, gconstpointer userdata) {
        _cleanup_(credentials_done) Credentials credentials = CREDENTIALS_NULL;
        sd_bus_message *m = reply_new(d);

        g_assert_cmpint(credentials_read(&credentials, m), ==, 0);
        g_assert_cmpuint(credentials.uid, ==, 1000);
        g_assert_cmpint(credentials.pid, ==, 42);
        g_assert_cmpuint(credentials.n_gids, ==, 2);
        g_assert_cmpuint(credentials.gids[1], ==, 8);
        sd_bus_message_unref(m);
        g_assert_cmpint(fcntl(credentials.pidfd, F_GETFD), ==, FD_CLOEXEC);
}

static void test_without_a_user_is_no_data(Desert *d, gconstpointer userdata) {
        _cleanup_(credentials_done) Credentials credentials = CREDENTIALS_NULL;
        sd_bus_message *m = message_new(d);

        message_open_options(m);
        message_option(m, "ProcessID", "u", 42);
        message_close_options(m);
        g_assert_cmpint(credentials_read(&credentials, m), ==, -ENODATA);
        sd_bus_message_unref(m);
}

static void test_another_type_is_refused(Desert *d, gconstpointer userdata) {
        _cleanup_(credentials_done) Credentials credentials = CREDENTIALS_NULL;
        sd_bus_message *m = message_new(d);

        message_open_options(m);
        message_option(m, "UnixUserID", "s", "root");
        message_close_options(m);
        g_assert_cmpint(credentials_read(&credentials, m), <, 0);
        sd_bus_message_unref(m);
}

/* The service lacks something: the caller is not to be told that access is denied. */
static void test_no_descriptor_is_left(Desert *d, gconstpointer userdata) {
        _cleanup_(credentials_done) Credentials credentials = CREDENTIALS_NULL;
        sd_bus_message *m = reply_new(d);
        struct rlimit limit, none;

        g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        none = (struct rlimit){ d->far_end, limit.rlim_max };
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &none), ==, 0);
        g_assert_cmpint(credentials_read(&credentials, m), ==, -ENOMEM);
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        sd_bus_message_unref(m);
}

static void desert_begin(Desert *d, gconstpointer userdata) {
        desert_up(d);
}

static void desert_end(Desert *d, gconstpointer userdata) {
        desert_down(d);
}

#define TEST(name, function)                                                                       \
        g_test_add("/credentials/" name, Desert, NULL, desert_begin, function, desert_end)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        TEST("what-the-bus-knows-is-read", test_what_the_bus_knows_is_read);
        TEST("without-a-user-is-no-data", test_without_a_user_is_no_data);
        TEST("another-type-is-refused", test_another_type_is_refused);
        TEST("no-descriptor-is-left", test_no_descriptor_is_left);
        return g_test_run();
}

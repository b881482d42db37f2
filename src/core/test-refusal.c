/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/refusal.h"

#include <glib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include <perfalloc/dbus.h>

/* As in org.perfalloc1(5). */
static const struct {
        int error;
        const char *name;
} kernel_errors[] = {
        { E2BIG, "AttrSize" },
        { EACCES, "PrivilegeNeeded" },
        { EBADF, "BadDescriptor" },
        { EBUSY, "Busy" },
        { EFAULT, "BadAddress" },
        { EINTR, "MixedTracing" },
        { EINVAL, "InvalidEvent" },
        { EPERM, "NotPermitted" },
        { EMFILE, "TooManyDescriptors" },
        { ENODEV, "NotOnThisCpu" },
        { ENOENT, "NoSuchEvent" },
        { ENOSPC, "NoCounterLeft" },
        { ENOSYS, "NotImplemented" },
        { EOPNOTSUPP, "NotSupported" },
        { EOVERFLOW, "StackTooDeep" },
        { ESRCH, "NoSuchProcess" },
};

static const struct {
        int code, error;
        const char *name;
} own_errors[] = {
        { REFUSAL_COUNTER_RUNNING, EBUSY, "CounterRunning" },
        { REFUSAL_ALREADY_ATTACHED, EEXIST, "AlreadyAttached" },
        { REFUSAL_WRONG_SCOPE, EINVAL, "WrongScope" },
        { REFUSAL_INVALID_PROCESS, EINVAL, "InvalidProcess" },
        { REFUSAL_NOT_ATTACHED, EINVAL, "NotAttached" },
        { REFUSAL_NOT_OWNER, EPERM, "NotOwner" },
        { REFUSAL_OBSTRUCTED, EBUSY, "Obstructed" },
        { REFUSAL_TIMED_OUT, ETIMEDOUT, "TimedOut" },
        { REFUSAL_ENDED, ESTALE, "Ended" },
        { REFUSAL_BROKER_BUSY, EBUSY, "BrokerBusy" },
};

static const struct {
        int code;
        const char *name;
} bus_errors[] = {
        { REFUSAL_INVALID_ARGS, SD_BUS_ERROR_INVALID_ARGS },
        { REFUSAL_ACCESS_DENIED, SD_BUS_ERROR_ACCESS_DENIED },
        { REFUSAL_INTERACTION_REQUIRED, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED },
        { REFUSAL_LIMITS_EXCEEDED, SD_BUS_ERROR_LIMITS_EXCEEDED },
        { REFUSAL_UNKNOWN_OBJECT, SD_BUS_ERROR_UNKNOWN_OBJECT },
};

static void assert_name(int code, const char *name) {
        g_autofree char *full = g_strconcat("org.perfalloc1.Error.", name, NULL);

        g_assert_cmpstr(refusal_name(code), ==, full);
}

static void test_each_kernel_error_has_its_name(void) {
        for (size_t i = 0; i < ELEMENTSOF(kernel_errors); i++) {
                int code = refusal_from_errno(kernel_errors[i].error);

                assert_name(code, kernel_errors[i].name);
                g_assert_cmpint(refusal_errno(code), ==, kernel_errors[i].error);
        }
}

static void test_other_errors_of_the_kernel_have_none(void) {
        for (int error = 0; error < 200; error++) {
                bool known = false;

                for (size_t i = 0; i < ELEMENTSOF(kernel_errors); i++)
                        known = known || kernel_errors[i].error == error;
                g_assert_true((refusal_from_errno(error) != 0) == known);
        }
        g_assert_cmpint(refusal_from_errno(-EBUSY), ==, 0);
}

static void test_own_errors_have_their_names(void) {
        for (size_t i = 0; i < ELEMENTSOF(own_errors); i++) {
                assert_name(own_errors[i].code, own_errors[i].name);
                g_assert_cmpint(refusal_errno(own_errors[i].code), ==, own_errors[i].error);
        }
}

static void test_bus_errors_have_their_names(void) {
        for (size_t i = 0; i < ELEMENTSOF(bus_errors); i++) {
                g_assert_cmpstr(refusal_name(bus_errors[i].code), ==, bus_errors[i].name);
                g_assert_cmpint(refusal_errno(bus_errors[i].code), >, 0);
        }
}

static void test_each_refusal_is_one_error(void) {
        g_assert_cmpuint(ELEMENTSOF(kernel_errors) + ELEMENTSOF(own_errors) +
                                 ELEMENTSOF(bus_errors),
                         ==, _REFUSAL_MAX - 1);
        for (int a = 1; a < _REFUSAL_MAX; a++)
                for (int b = a + 1; b < _REFUSAL_MAX; b++)
                        g_assert_cmpstr(refusal_name(a), !=, refusal_name(b));
}

static void test_what_is_no_refusal_has_no_name(void) {
        static const int codes[] = { 0, -1, -ENOMEM, _REFUSAL_MAX, INT32_MAX, INT32_MIN };

        for (size_t i = 0; i < ELEMENTSOF(codes); i++) {
                g_assert_null(refusal_name(codes[i]));
                g_assert_cmpint(refusal_errno(codes[i]), ==, 0);
        }
}

/* The installed header's map has the same. */
static void test_installed_map_agrees(void) {
        size_t n = 0;

        for (const sd_bus_error_map *m = perfalloc_error_map; m->name; m++, n++) {
                int code = 1;

                while (code < _REFUSAL_MAX && strcmp(refusal_name(code), m->name) != 0)
                        code++;
                g_assert_cmpint(refusal_errno(code), ==, m->code);
        }
        g_assert_cmpuint(n, ==, ELEMENTSOF(kernel_errors) + ELEMENTSOF(own_errors));
}

static void test_refuse_returns_its_code(void) {
        Refusal why = REFUSAL_NULL;

        g_assert_cmpint(refuse(NULL, REFUSAL_BUSY, "nobody %s", "listens"), ==, REFUSAL_BUSY);
        g_assert_cmpint(refuse(&why, REFUSAL_ENDED, "hold %d", 7), ==, REFUSAL_ENDED);
        g_assert_cmpint(why.code, ==, REFUSAL_ENDED);
        g_assert_cmpstr(why.text, ==, "hold 7");
}

static void test_control_characters_are_replaced(void) {
        Refusal why = REFUSAL_NULL;

        refuse(&why, REFUSAL_BUSY, "a\x1b[31m%s", "\n\r\t\x7f end");
        g_assert_cmpstr(why.text, ==, "a?[31m???? end");
}

static void test_long_text_is_cut(void) {
        g_autofree char *name = g_strnfill(100000, 'x');
        Refusal why = REFUSAL_NULL;

        refuse(&why, REFUSAL_BUSY, "%s", name);
        g_assert_cmpuint(strlen(why.text), ==, REFUSAL_TEXT_MAX - 1);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/refusal/each-kernel-error-has-its-name",
                        test_each_kernel_error_has_its_name);
        g_test_add_func("/refusal/other-errors-of-the-kernel-have-none",
                        test_other_errors_of_the_kernel_have_none);
        g_test_add_func("/refusal/own-errors-have-their-names", test_own_errors_have_their_names);
        g_test_add_func("/refusal/bus-errors-have-their-names", test_bus_errors_have_their_names);
        g_test_add_func("/refusal/each-refusal-is-one-error", test_each_refusal_is_one_error);
        g_test_add_func("/refusal/what-is-no-refusal-has-no-name",
                        test_what_is_no_refusal_has_no_name);
        g_test_add_func("/refusal/installed-map-agrees", test_installed_map_agrees);
        g_test_add_func("/refusal/refuse-returns-its-code", test_refuse_returns_its_code);
        g_test_add_func("/refusal/control-characters-are-replaced",
                        test_control_characters_are_replaced);
        g_test_add_func("/refusal/long-text-is-cut", test_long_text_is_cut);
        return g_test_run();
}

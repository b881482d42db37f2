/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/address.h"

#include <glib.h>

static void test_a_range_is_whole_or_not_at_all(void) {
        static const uint64_t max = 0xbfffefff; /* of a 32-bit kernel with 3 GB of user space */
        static const struct {
                uint64_t first, length;
                bool user;
        } ranges[] = {
                { 0, 1, true },
                { 0x1000, 8, true },
                { 0xbfffeff8, 8, true },
                { 0xbfffeffc, 8, false },
                { 0xc0000000, 4, false },        /* the kernel, with bit 63 clear */
                { 0x1c0000000, 4, false },       /* the same, as a 32-bit kernel reads it */
                { UINT64_C(1) << 63, 4, false }, /* a 64-bit kernel's */
                { 0x1000, 0, false },
                { 0x1000, UINT64_MAX, false }, /* wraps around */
                { UINT64_MAX, 2, false },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(ranges); i++)
                g_assert_cmpint(address_is_user(ranges[i].first, ranges[i].length, max), ==,
                                ranges[i].user);
}

static void test_what_a_program_has_is_user_space(void) {
        static int data;
        g_autofree char *heap = g_malloc(1);
        uint64_t max = address_user_max();

        g_assert_true(address_is_user((uintptr_t) &data, sizeof(data), max));
        g_assert_true(address_is_user((uintptr_t) heap, 1, max));
        g_assert_true(address_is_user((uintptr_t) &heap, sizeof(heap), max)); /* on the stack */
        g_assert_false(address_is_user((uint64_t) UINTPTR_MAX - 7, 8, max));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/address/a-range-is-whole-or-not-at-all",
                        test_a_range_is_whole_or_not_at_all);
        g_test_add_func("/address/what-a-program-has-is-user-space",
                        test_what_a_program_has_is_user_space);
        return g_test_run();
}

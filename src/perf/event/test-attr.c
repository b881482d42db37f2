/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf/event/attr.h"

#include <glib.h>
#include <string.h>

#include "machine.h"

enum { KERNEL_SIZE = 128 };

typedef struct Sent {
        unsigned char bytes[ATTR_SIZE_MAX + 8];
} Sent;

static Sent sent(uint32_t size) {
        Sent s = {};
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                        .config = PERF_COUNT_SW_DUMMY,
                                        .size = size };

        memcpy(s.bytes, &attr, sizeof(attr));
        return s;
}

static Attr assert_read(const Sent *s, size_t n, uint32_t kernel_size, uint32_t size) {
        Refusal why = REFUSAL_NULL;
        Attr a;

        if (attr_read(s->bytes, n, kernel_size, &a, &why) != 0)
                g_error("%s", why.text);
        g_assert_cmpuint(attr_number(&a, ATTR_SIZE), ==, size);
        g_assert_cmpuint(attr_number(&a, ATTR_CONFIG), ==, PERF_COUNT_SW_DUMMY);
        return a;
}

static void assert_refused(const Sent *s, size_t n, uint32_t kernel_size, int code,
                           const char *words) {
        Refusal why = REFUSAL_NULL;
        Attr a;

        g_assert_cmpint(attr_read(s->bytes, n, kernel_size, &a, &why), ==, code);
        if (!strstr(why.text, words))
                g_error("'%s' does not say '%s'", why.text, words);
}

static void test_size_0_is_the_first_version(void) {
        Sent s = sent(0);

        memset(s.bytes + ATTR_SIZE_MIN, 0xff, sizeof(s.bytes) - ATTR_SIZE_MIN);
        for (size_t n = ATTR_SIZE_MIN; n <= ATTR_SIZE_MAX; n += 8) {
                Attr a = assert_read(&s, n, KERNEL_SIZE, ATTR_SIZE_MIN);

                g_assert_cmphex(attr_number(&a, ATTR_CONFIG2), ==, 0);
        }
}

static void test_what_is_missing_is_zero(void) {
        for (uint32_t size = ATTR_SIZE_MIN; size <= KERNEL_SIZE; size++) {
                Sent s = sent(size);
                Attr a;

                memset(s.bytes + size, 0xff, sizeof(s.bytes) - size);
                a = assert_read(&s, ATTR_SIZE_MAX, KERNEL_SIZE, size);
                for (size_t i = size; i < sizeof(a); i++)
                        g_assert_cmphex(a.bytes[i], ==, 0);
        }
}

static void test_newer_one_is_read_when_the_rest_is_zero(void) {
        for (uint32_t size = KERNEL_SIZE; size <= ATTR_SIZE_MAX; size += 8) {
                Sent s = sent(size);

                (void) assert_read(&s, size, KERNEL_SIZE, size);
                s.bytes[size - 1] = 1;
                if (size > KERNEL_SIZE)
                        assert_refused(&s, size, KERNEL_SIZE, REFUSAL_ATTR_SIZE, "expects 128");
        }
}

static void test_what_the_kernel_knows_and_we_do_not_is_not_permitted(void) {
        Sent s = sent(ATTR_SIZE_KNOWN + 8);

        (void) assert_read(&s, ATTR_SIZE_MAX, ATTR_SIZE_MAX, ATTR_SIZE_KNOWN + 8);
        s.bytes[ATTR_SIZE_KNOWN] = 1;
        assert_refused(&s, ATTR_SIZE_MAX, ATTR_SIZE_MAX, REFUSAL_NOT_PERMITTED, "byte 144");
        assert_refused(&s, ATTR_SIZE_MAX, 0, REFUSAL_NOT_PERMITTED, "byte 144");
}

static void test_impossible_sizes_name_the_right_one(void) {
        static const struct {
                size_t n;
                uint32_t size;
        } sizes[] = {
                { 0, 0 },    { 7, 0 },     { 8, 64 },   { 63, 0 },      { 64, 1 },
                { 64, 63 },  { 64, 65 },   { 72, 128 }, { 4096, 4097 }, { 4096, UINT32_MAX },
                { 4097, 0 }, { 4104, 64 },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
                Sent s = sent(sizes[i].size);

                assert_refused(&s, sizes[i].n, KERNEL_SIZE, REFUSAL_ATTR_SIZE, "expects 128");
                assert_refused(&s, sizes[i].n, 0, REFUSAL_ATTR_SIZE, "attr: ");
        }
}

static void test_bytes_beyond_what_was_sent_are_not_read(void) {
        g_autofree unsigned char *bytes = g_malloc0(ATTR_SIZE_MIN); /* the sanitizer checks this */
        Refusal why;
        Attr a;

        bytes[4] = 128;
        g_assert_cmpint(attr_read(bytes, ATTR_SIZE_MIN, KERNEL_SIZE, &a, &why), ==,
                        REFUSAL_ATTR_SIZE);
        g_assert_cmpint(attr_read(NULL, 0, KERNEL_SIZE, &a, &why), ==, REFUSAL_ATTR_SIZE);
}

static void test_kernel_tells_its_size(void) {
        uint32_t size = attr_kernel_size();

        if (machine_lacks(MACHINE_EVENTS))
                return;
        g_assert_cmpuint(size, >=, ATTR_SIZE_MIN);
        g_assert_cmpuint(size % 8, ==, 0);
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/attr/size-0-is-the-first-version", test_size_0_is_the_first_version);
        g_test_add_func("/attr/what-is-missing-is-zero", test_what_is_missing_is_zero);
        g_test_add_func("/attr/a-newer-one-is-read-when-the-rest-is-zero",
                        test_newer_one_is_read_when_the_rest_is_zero);
        g_test_add_func("/attr/what-the-kernel-knows-and-we-do-not-is-not-permitted",
                        test_what_the_kernel_knows_and_we_do_not_is_not_permitted);
        g_test_add_func("/attr/impossible-sizes-name-the-right-one",
                        test_impossible_sizes_name_the_right_one);
        g_test_add_func("/attr/bytes-beyond-what-was-sent-are-not-read",
                        test_bytes_beyond_what_was_sent_are_not_read);
        g_test_add_func("/machine/attr/the-kernel-tells-its-size", test_kernel_tells_its_size);
        return g_test_run();
}

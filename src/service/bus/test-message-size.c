/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/bus/message-size.h"

#include "service/bus/test-message.h"

#define MAX_WEIGHT 10000u

static uint64_t weigh(sd_bus_message *m) {
        uint64_t weight = 0;

        g_assert_cmpint(message_size(m, MAX_WEIGHT, &weight, NULL), ==, 0);
        return weight;
}

static void test_nothing_weighs_nearly_nothing(Desert *d, gconstpointer userdata) {
        sd_bus_message *m = message_seal(message_new(d));

        g_assert_cmpuint(weigh(m), <, 10);
        sd_bus_message_unref(m);
}

static void test_words_weigh_their_length(Desert *d, gconstpointer userdata) {
        g_autofree char *words = g_strnfill(1000, 'x');
        sd_bus_message *m = message_new(d);

        g_assert_cmpint(sd_bus_message_append(m, "sas", words, 2, words, words), >=, 0);
        message_seal(m);
        g_assert_cmpuint(weigh(m), >=, 3000);
        g_assert_cmpuint(weigh(m), <, 3100);
        sd_bus_message_unref(m);
}

static void test_arrays_weigh_their_size(Desert *d, gconstpointer userdata) {
        static const uint64_t numbers[100];
        sd_bus_message *m = message_new(d);

        g_assert_cmpint(sd_bus_message_append_array(m, 't', numbers, sizeof(numbers)), >=, 0);
        message_seal(m);
        g_assert_cmpuint(weigh(m), >=, sizeof(numbers));
        g_assert_cmpuint(weigh(m), <, sizeof(numbers) + 100);
        sd_bus_message_unref(m);
}

static void test_options_are_looked_into(Desert *d, gconstpointer userdata) {
        g_autofree char *words = g_strnfill(1000, 'x');
        sd_bus_message *m = message_new(d);

        message_open_options(m);
        message_option(m, "first", "(sv)", words, "v", "s", words);
        message_option(m, "second", "ab", 3, 1, 1, 1);
        message_close_options(m);
        g_assert_cmpuint(weigh(m), >=, 2000);
        g_assert_cmpuint(weigh(m), <, 2200);
        sd_bus_message_unref(m);
}

static void test_descriptors_weigh_more(Desert *d, gconstpointer userdata) {
        sd_bus_message *m = message_new(d);

        g_assert_cmpint(sd_bus_message_append(m, "hh", d->far_end, d->far_end), >=, 0);
        message_seal(m);
        g_assert_cmpuint(weigh(m), >=, 2000);
        sd_bus_message_unref(m);
}

static void test_no_further_than_needed(Desert *d, gconstpointer userdata) {
        g_autofree char *words = g_strnfill(1000, 'x');
        sd_bus_message *m = message_new(d);

        g_assert_cmpint(sd_bus_message_open_container(m, 'a', "(sv)"), >=, 0);
        for (int i = 0; i < 100; i++)
                g_assert_cmpint(sd_bus_message_append(m, "(sv)", words, "s", words), >=, 0);
        g_assert_cmpint(sd_bus_message_close_container(m), >=, 0);
        message_seal(m);
        g_assert_cmpuint(weigh(m), ==, MAX_WEIGHT + 1);
        sd_bus_message_unref(m);
}

static void test_message_is_as_before(Desert *d, gconstpointer userdata) {
        sd_bus_message *m = message_new(d);
        const char *first, *second;
        uint32_t number;

        g_assert_cmpint(sd_bus_message_append(m, "sus", "one", 2, "three"), >=, 0);
        message_seal(m);
        (void) weigh(m);
        g_assert_cmpint(sd_bus_message_read(m, "sus", &first, &number, &second), >, 0);
        g_assert_cmpstr(first, ==, "one");
        g_assert_cmpuint(number, ==, 2);
        g_assert_cmpstr(second, ==, "three");
        sd_bus_message_unref(m);
}

static void desert_begin(Desert *d, gconstpointer userdata) {
        desert_up(d);
}

static void desert_end(Desert *d, gconstpointer userdata) {
        desert_down(d);
}

#define TEST(name, function)                                                                       \
        g_test_add("/weight/" name, Desert, NULL, desert_begin, function, desert_end)

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        TEST("nothing-weighs-nearly-nothing", test_nothing_weighs_nearly_nothing);
        TEST("words-weigh-their-length", test_words_weigh_their_length);
        TEST("arrays-weigh-their-size", test_arrays_weigh_their_size);
        TEST("options-are-looked-into", test_options_are_looked_into);
        TEST("descriptors-weigh-more", test_descriptors_weigh_more);
        TEST("no-further-than-needed", test_no_further_than_needed);
        TEST("message-is-as-before", test_message_is_as_before);
        return g_test_run();
}

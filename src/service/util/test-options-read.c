/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/util/options.h"

#include <sys/stat.h>

#include "service/bus/test-message.h"

typedef struct Values {
        int flag, descriptor;
        uint32_t number;
        uint64_t large;
        const char *word;
        char **words;
} Values;

enum { FLAG, NUMBER, LARGE, WORD, DESCRIPTOR, WORDS, _N_SPECS };

static const OptionSpec specs[_N_SPECS] = {
        [FLAG] = { "flag", "b", offsetof(Values, flag) },
        [NUMBER] = { "number", "u", offsetof(Values, number) },
        [LARGE] = { "large", "t", offsetof(Values, large) },
        [WORD] = { "word", "s", offsetof(Values, word) },
        [DESCRIPTOR] = { "descriptor", "h", offsetof(Values, descriptor) },
        [WORDS] = { "words", "as", offsetof(Values, words) },
};

typedef struct Stage {
        Desert desert;
        sd_bus_message *m;
        Values values;
        uint64_t seen;
        Refusal why;
} Stage;

static void stage_up(Stage *s, gconstpointer unused) {
        *s = (Stage){ .values = { .flag = 7, .number = 7, .descriptor = -1 } };
        desert_up(&s->desert);
        s->m = message_new(&s->desert);
        message_open_options(s->m);
}

static void stage_down(Stage *s, gconstpointer unused) {
        strings_free(s->values.words);
        sd_bus_message_unref(s->m);
        desert_down(&s->desert);
}

static int stage_read(Stage *s) {
        message_close_options(s->m);
        return options_read(s->m, specs, _N_SPECS, &s->values, &s->seen, &s->why);
}

static void assert_refused(Stage *s, const char *words) {
        g_assert_cmpint(stage_read(s), ==, REFUSAL_INVALID_ARGS);
        g_assert_cmpint(s->why.code, ==, REFUSAL_INVALID_ARGS);
        if (!strstr(s->why.text, words))
                g_error("'%s' does not say %s", s->why.text, words);
}

static void test_options_are_read_by_their_types(Stage *s, gconstpointer unused) {
        static const char *const words[] = { "a", "", "b" };
        struct stat sent, read;

        message_option(s->m, "large", "t", UINT64_MAX);
        message_option(s->m, "flag", "b", 1);
        message_option(s->m, "word", "s", "hello");
        message_option(s->m, "descriptor", "h", s->desert.far_end);
        message_option(s->m, "number", "u", UINT32_MAX);
        message_option(s->m, "words", "as", 3, words[0], words[1], words[2]);
        g_assert_cmpint(stage_read(s), ==, 0);
        g_assert_cmpuint(s->seen, ==, (1u << _N_SPECS) - 1);
        g_assert_cmpint(s->values.flag, ==, 1);
        g_assert_cmpuint(s->values.number, ==, UINT32_MAX);
        g_assert_cmpuint(s->values.large, ==, UINT64_MAX);
        g_assert_cmpstr(s->values.word, ==, "hello");
        for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
                g_assert_cmpstr(s->values.words[i], ==, words[i]);
        g_assert_null(s->values.words[3]);
        g_assert_cmpint(fstat(s->desert.far_end, &sent), ==, 0);
        g_assert_cmpint(fstat(s->values.descriptor, &read), ==, 0);
        g_assert_cmpuint(read.st_ino, ==, sent.st_ino);
}

static void test_what_is_not_given_stays_as_it_was(Stage *s, gconstpointer unused) {
        message_option(s->m, "number", "u", 9);
        g_assert_cmpint(stage_read(s), ==, 0);
        g_assert_cmpuint(s->seen, ==, 1u << NUMBER);
        g_assert_cmpint(s->values.flag, ==, 7);
        g_assert_cmpuint(s->values.number, ==, 9);
        g_assert_null(s->values.words);
}

static void test_no_options_are_fine(Stage *s, gconstpointer unused) {
        s->seen = 99;
        g_assert_cmpint(stage_read(s), ==, 0);
        g_assert_cmpuint(s->seen, ==, 0);
}

static void test_no_strings_are_an_array_without_any(Stage *s, gconstpointer unused) {
        message_option(s->m, "words", "as", 0);
        g_assert_cmpint(stage_read(s), ==, 0);
        g_assert_cmpuint(s->seen, ==, 1u << WORDS);
        g_assert_nonnull(s->values.words);
        g_assert_null(s->values.words[0]);
}

static void test_unknown_key_is_named_with_those_known(Stage *s, gconstpointer unused) {
        message_option(s->m, "flags", "b", 1);
        assert_refused(s, "'flags'");
        for (int i = 0; i < _N_SPECS; i++)
                g_assert_nonnull(strstr(s->why.text, specs[i].key));
}

static void test_long_keys_are_cut(Stage *s, gconstpointer unused) {
        g_autofree char *key = g_strnfill(100000, 'k');

        message_option(s->m, key, "b", 1);
        assert_refused(s, "kkkk");
        g_assert_nonnull(strstr(s->why.text, "words")); /* the known options are still named */
}

static void test_each_wrong_type_is_refused_by_name(Stage *s, gconstpointer unused) {
        static const struct {
                const char *type, *words;
        } wrong[] = {
                { "b", "type 'b'" },
                { "u", "type 'u'" },
                { "t", "type 't'" },
                { "s", "type 's'" },
        };

        for (int spec = 0; spec < _N_SPECS; spec++)
                for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
                        g_autofree char *key = g_strdup_printf("'%s'", specs[spec].key);

                        if (strcmp(wrong[i].type, specs[spec].signature) == 0)
                                continue;
                        stage_down(s, NULL);
                        stage_up(s, NULL);
                        if (*wrong[i].type == 's')
                                message_option(s->m, specs[spec].key, "s", "1");
                        else if (*wrong[i].type == 't')
                                message_option(s->m, specs[spec].key, "t", UINT64_C(1));
                        else
                                message_option(s->m, specs[spec].key, wrong[i].type, 1);
                        assert_refused(s, key);
                        g_assert_nonnull(strstr(s->why.text, wrong[i].words));
                        g_assert_cmpint(s->values.flag, ==, 7);
                }
}

static void test_containers_are_wrong_types_too(Stage *s, gconstpointer unused) {
        message_option(s->m, "number", "au", 1, 5);
        assert_refused(s, "type 'au', not 'u'");
        stage_down(s, NULL);
        stage_up(s, NULL);
        message_option(s->m, "words", "aas", 1, 1, "x");
        assert_refused(s, "type 'aas', not 'as'");
        stage_down(s, NULL);
        stage_up(s, NULL);
        message_option(s->m, "word", "v", "s", "x");
        assert_refused(s, "type 'v', not 's'");
}

static void test_key_given_twice_is_refused(Stage *s, gconstpointer unused) {
        message_option(s->m, "words", "as", 1, "a");
        message_option(s->m, "number", "u", 1);
        message_option(s->m, "words", "as", 1, "b");
        assert_refused(s, "'words' is given twice");
}

/* A client may send millions. */
static void test_too_many_strings_are_refused_at_once(Stage *s, gconstpointer unused) {
        message_option_strings(s->m, "words", "", OPTION_STRINGS_MAX + 1);
        assert_refused(s, "'words' has more than");
        g_assert_null(s->values.words);
        stage_down(s, NULL);
        stage_up(s, NULL);
        message_option_strings(s->m, "words", "", OPTION_STRINGS_MAX);
        g_assert_cmpint(stage_read(s), ==, 0);
        g_assert_nonnull(s->values.words[OPTION_STRINGS_MAX - 1]);
        g_assert_null(s->values.words[OPTION_STRINGS_MAX]);
}

static void test_message_without_options_is_a_fault(Stage *s, gconstpointer unused) {
        sd_bus_message_unref(s->m);
        s->m = message_new(&s->desert);
        g_assert_cmpint(sd_bus_message_append(s->m, "s", "x"), >=, 0);
        message_seal(s->m);
        g_assert_cmpint(options_read(s->m, specs, _N_SPECS, &s->values, &s->seen, &s->why), <, 0);
}

static void test_words_have_a_length_and_no_control_characters(Stage *s, gconstpointer unused) {
        g_assert_cmpint(words_check("the reason", "", 4, &s->why), ==, 0);
        g_assert_cmpint(words_check("the reason", "four", 4, &s->why), ==, 0);
        g_assert_cmpint(words_check("the reason", "\303\244\303\244", 4, &s->why), ==, 0);
        g_assert_cmpint(s->why.code, ==, 0);
        g_assert_cmpint(words_check("the reason", "fives", 4, &s->why), ==, REFUSAL_INVALID_ARGS);
        g_assert_nonnull(strstr(s->why.text, "the reason has more than 4 bytes"));
        for (int c = 1; c < 128; c++) {
                const char words[] = { (char) c, 0 };

                g_assert_cmpint(words_check("the reason", words, 4, &s->why), ==,
                                c < ' ' || c == 127 ? REFUSAL_INVALID_ARGS : 0);
        }
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                void (*test)(Stage *s, gconstpointer unused);
        } tests[] = {
                { "options-are-read-by-their-types", test_options_are_read_by_their_types },
                { "what-is-not-given-stays-as-it-was", test_what_is_not_given_stays_as_it_was },
                { "no-options-are-fine", test_no_options_are_fine },
                { "no-strings-are-an-array-without-any", test_no_strings_are_an_array_without_any },
                { "unknown-key-is-named-with-those-known",
                  test_unknown_key_is_named_with_those_known },
                { "long-keys-are-cut", test_long_keys_are_cut },
                { "each-wrong-type-is-refused-by-name", test_each_wrong_type_is_refused_by_name },
                { "containers-are-wrong-types-too", test_containers_are_wrong_types_too },
                { "key-given-twice-is-refused", test_key_given_twice_is_refused },
                { "too-many-strings-are-refused-at-once",
                  test_too_many_strings_are_refused_at_once },
                { "message-without-options-is-a-fault", test_message_without_options_is_a_fault },
                { "words-have-a-length-and-no-control-characters",
                  test_words_have_a_length_and_no_control_characters },
        };

        g_test_init(&argc, &argv, NULL);
        for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
                g_autofree char *path = g_strconcat("/options/", tests[i].name, NULL);

                g_test_add(path, Stage, NULL, stage_up, tests[i].test, stage_down);
        }
        return g_test_run();
}

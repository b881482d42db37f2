/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/pack.h"

#include <glib.h>
#include <string.h>

typedef struct Thing {
        bool flag;
        uint32_t small;
        int32_t negative;
        uint64_t large;
        char *text, *none;
} Thing;

static const PackField thing_fields[] = {
        PACK_FIELD(PACK_BOOL, "flag", Thing, flag),
        PACK_FIELD(PACK_U32, "small", Thing, small),
        PACK_FIELD(PACK_U32, "negative", Thing, negative),
        PACK_FIELD(PACK_U64, "large", Thing, large),
        PACK_FIELD(PACK_STRING, "text", Thing, text),
        PACK_FIELD(PACK_STRING, "none", Thing, none),
};

static Unpack unpack_of(const Pack *p) {
        return (Unpack){ p->data, p->n };
}

static void pack_thing(Pack *p) {
        Thing t = { true, 7, -1, UINT64_MAX, (char *) "words, with = and \n", NULL };

        pack_struct(p, thing_fields, ELEMENTSOF(thing_fields), &t);
        g_assert_false(p->failed);
}

static void thing_done(Thing *t) {
        free(t->text);
        free(t->none);
}

static void struct_comes_back(void) {
        _cleanup_(thing_done) Thing t = { .none = strdup("was something") };
        _cleanup_(pack_done) Pack p = {};
        Unpack u;

        pack_thing(&p);
        u = unpack_of(&p);
        g_assert_true(unpack_is_valid(&u));
        g_assert_cmpint(unpack_struct(&u, thing_fields, ELEMENTSOF(thing_fields), &t), ==, 0);
        g_assert_true(t.flag);
        g_assert_cmpuint(t.small, ==, 7);
        g_assert_cmpint(t.negative, ==, -1);
        g_assert_cmpuint(t.large, ==, UINT64_MAX);
        g_assert_cmpstr(t.text, ==, "words, with = and \n");
        g_assert_null(t.none);
}

/* Members that are 0 are not written, and stay 0 in a zeroed object. */
static void what_is_not_set_takes_no_room(void) {
        _cleanup_(thing_done) Thing t = {};
        _cleanup_(pack_done) Pack p = {}, all = {};
        Unpack u;

        pack_struct_set(&p, thing_fields, ELEMENTSOF(thing_fields), &t);
        g_assert_cmpuint(p.n, ==, 0);
        pack_struct_set(&p, thing_fields, ELEMENTSOF(thing_fields),
                        &(Thing){ .negative = -1, .text = (char *) "" });
        pack_struct(&all, thing_fields, ELEMENTSOF(thing_fields),
                    &(Thing){ .negative = -1, .text = (char *) "" });
        g_assert_cmpuint(p.n, <, all.n);
        u = unpack_of(&p);
        g_assert_true(unpack_is_valid(&u));
        g_assert_cmpint(unpack_struct(&u, thing_fields, ELEMENTSOF(thing_fields), &t), ==, 0);
        g_assert_false(t.flag);
        g_assert_cmpuint(t.small, ==, 0);
        g_assert_cmpint(t.negative, ==, -1);
        g_assert_cmpuint(t.large, ==, 0);
        g_assert_cmpstr(t.text, ==, "");
        g_assert_null(t.none);
}

static void missing_fields_keep_their_value(void) {
        _cleanup_(thing_done) Thing t = { .small = 5, .text = strdup("stays") };
        _cleanup_(pack_done) Pack p = {};
        Unpack u;

        pack_u64(&p, "large", 9);
        u = unpack_of(&p);
        g_assert_cmpint(unpack_struct(&u, thing_fields, ELEMENTSOF(thing_fields), &t), ==, 0);
        g_assert_cmpuint(t.large, ==, 9);
        g_assert_cmpuint(t.small, ==, 5);
        g_assert_cmpstr(t.text, ==, "stays");
}

static void unknown_fields_are_left_alone(void) {
        _cleanup_(thing_done) Thing t = {};
        _cleanup_(pack_done) Pack p = {};
        Unpack u;

        pack_string(&p, "of a later version", "x");
        pack_end(&p, pack_begin(&p, "list of a later version"));
        pack_thing(&p);
        u = unpack_of(&p);
        g_assert_cmpint(unpack_struct(&u, thing_fields, ELEMENTSOF(thing_fields), &t), ==, 0);
        g_assert_cmpuint(t.small, ==, 7);
}

static void another_type_is_refused(void) {
        _cleanup_(thing_done) Thing t = {};
        _cleanup_(pack_done) Pack p = {};
        Unpack u;

        pack_string(&p, "small", "7");
        u = unpack_of(&p);
        g_assert_cmpint(unpack_struct(&u, thing_fields, ELEMENTSOF(thing_fields), &t), ==,
                        -EBADMSG);
        pack_clear(&p);
        pack_u64(&p, "small", (uint64_t) UINT32_MAX + 1);
        u = unpack_of(&p);
        g_assert_cmpint(unpack_struct(&u, thing_fields, ELEMENTSOF(thing_fields), &t), ==,
                        -EBADMSG);
        pack_clear(&p);
        pack_u64(&p, "flag", 2);
        u = unpack_of(&p);
        g_assert_cmpint(unpack_struct(&u, thing_fields, ELEMENTSOF(thing_fields), &t), ==,
                        -EBADMSG);
}

static void lists_nest(void) {
        _cleanup_(pack_done) Pack p = {};
        size_t place = 0, inner_place, n = 0;
        Unpack u, element, inner;

        for (uint64_t i = 0; i < 3; i++) {
                size_t begin = pack_begin(&p, "outer");

                for (uint64_t k = 0; k < i; k++) {
                        size_t inner_begin = pack_begin(&p, "inner");

                        pack_u64(&p, "k", 10 * i + k);
                        pack_end(&p, inner_begin);
                }
                pack_u64(&p, "i", i);
                pack_end(&p, begin);
        }
        pack_bytes(&p, "after", "\0\1", 2);
        u = unpack_of(&p);
        g_assert_true(unpack_is_valid(&u));
        for (uint64_t i = 0; unpack_next(&u, "outer", &place, &element); i++, n++) {
                uint64_t k = 0;

                g_assert_cmpuint(unpack_u64(&element, "i", 99), ==, i);
                for (inner_place = 0; unpack_next(&element, "inner", &inner_place, &inner); k++)
                        g_assert_cmpuint(unpack_u64(&inner, "k", 99), ==, 10 * i + k);
                g_assert_cmpuint(k, ==, i);
        }
        g_assert_cmpuint(n, ==, 3);
        g_assert_cmpmem(unpack_bytes(&u, "after", &n), 2, "\0\1", 2);
        g_assert_cmpuint(n, ==, 2);
}

/* With any truncation or change, nothing is read beyond the end, and truncation is noticed. */
static void damage_is_seen(void) {
        _cleanup_(pack_done) Pack p = {};
        Unpack whole;

        pack_end(&p, pack_begin(&p, "list"));
        pack_thing(&p);
        whole = unpack_of(&p);
        for (size_t n = 0; n < whole.n; n++) {
                /* an allocation of its own, so that the sanitizer checks its end */
                _cleanup_free_ uint8_t *copy = malloc(n + 1);
                Unpack cut = { copy, n };
                Thing t = {};

                g_assert_nonnull(copy);
                memcpy(copy, p.data, n);
                (void) unpack_struct(&cut, thing_fields, ELEMENTSOF(thing_fields), &t);
                thing_done(&t);
        }
        for (size_t i = 0; i < whole.n; i++) {
                _cleanup_free_ uint8_t *copy = malloc(whole.n);
                Unpack changed = { copy, whole.n };
                Thing t = {};

                g_assert_nonnull(copy);
                memcpy(copy, p.data, whole.n);
                copy[i] ^= 0xff;
                if (unpack_is_valid(&changed))
                        (void) unpack_struct(&changed, thing_fields, ELEMENTSOF(thing_fields), &t);
                thing_done(&t);
        }
        whole.n--;
        g_assert_false(unpack_is_valid(&whole));
}

/* Its head says how many bytes the value has. */
/* It says that it is longer than what is there. */
static void cut_field_is_none(void) {
        _cleanup_(pack_done) Pack p = {};
        Unpack u;

        pack_string(&p, "key", "value");
        u = unpack_of(&p);
        g_assert_cmpstr(unpack_string(&u, "key"), ==, "value");
        while (u.n-- > 0)
                g_assert_null(unpack_string(&u, "key"));
}

static void integer_of_another_size_is_damage(void) {
        _cleanup_(pack_done) Pack p = {};
        const uint32_t four = 4;
        Unpack u;

        pack_u64(&p, "large", 7);
        memcpy(p.data, &four, sizeof(four));
        u = unpack_of(&p);
        u.n -= sizeof(uint64_t) - four;
        g_assert_false(unpack_is_valid(&u));
}

int main(int argc, char *argv[]) {
        g_test_init(&argc, &argv, NULL);
        g_test_add_func("/pack/struct-comes-back", struct_comes_back);
        g_test_add_func("/pack/what-is-not-set-takes-no-room", what_is_not_set_takes_no_room);
        g_test_add_func("/pack/missing-fields-keep-their-value", missing_fields_keep_their_value);
        g_test_add_func("/pack/unknown-fields-are-left-alone", unknown_fields_are_left_alone);
        g_test_add_func("/pack/another-type-is-refused", another_type_is_refused);
        g_test_add_func("/pack/lists-nest", lists_nest);
        g_test_add_func("/pack/damage-is-seen", damage_is_seen);
        g_test_add_func("/pack/cut-field-is-none", cut_field_is_none);
        g_test_add_func("/pack/integer-of-another-size-is-damage",
                        integer_of_another_size_is_damage);
        return g_test_run();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pack.h"

#include <string.h>

/* A field is its head, the key with its NUL, and the value. */
typedef struct FieldHead {
        uint32_t n_value;
        uint8_t n_key; /* with the NUL */
        uint8_t tag;
} __attribute__((packed)) FieldHead;

/* Written to the store: never renumber. */
enum {
        TAG_INTEGER = 1, /* 8 bytes */
        TAG_STRING = 2,  /* with its NUL; no bytes: NULL */
        TAG_BYTES = 3,
        TAG_ELEMENT = 4,
};

typedef struct Field {
        const char *key;
        uint8_t tag;
        const uint8_t *value;
        size_t n_value;
} Field;

/* ---- writing ---- */

static void *pack_extend(Pack *p, size_t n) {
        void *place;

        if (p->failed)
                return NULL;
        if (n > p->room - p->n) {
                size_t room = MAX(2 * p->room, p->n + n + 256);
                uint8_t *data = realloc(p->data, room);

                if (!data) {
                        p->failed = true;
                        return NULL;
                }
                p->data = data;
                p->room = room;
        }
        place = p->data + p->n;
        p->n += n;
        return place;
}

static void pack_field(Pack *p, const char *key, uint8_t tag, const void *value, size_t n) {
        size_t n_key = strlen(key) + 1;
        FieldHead head = { .n_value = (uint32_t) n, .n_key = (uint8_t) n_key, .tag = tag };
        uint8_t *place = pack_extend(p, sizeof(head) + n_key + n);

        if (!place)
                return;
        memcpy(place, &head, sizeof(head));
        memcpy(place + sizeof(head), key, n_key);
        if (n > 0)
                memcpy(place + sizeof(head) + n_key, value, n);
}

void pack_u64(Pack *p, const char *key, uint64_t value) {
        pack_field(p, key, TAG_INTEGER, &value, sizeof(value));
}

void pack_string(Pack *p, const char *key, const char *value) {
        pack_field(p, key, TAG_STRING, value, value ? strlen(value) + 1 : 0);
}

void pack_bytes(Pack *p, const char *key, const void *data, size_t n) {
        pack_field(p, key, TAG_BYTES, data, n);
}

size_t pack_begin(Pack *p, const char *key) {
        size_t begin = p->n;

        pack_field(p, key, TAG_ELEMENT, NULL, 0);
        return begin;
}

void pack_end(Pack *p, size_t begin) {
        FieldHead head;

        if (p->failed)
                return;
        memcpy(&head, p->data + begin, sizeof(head));
        head.n_value = (uint32_t) (p->n - begin - sizeof(head) - head.n_key);
        memcpy(p->data + begin, &head, sizeof(head));
}

/* A string: whether it is not NULL. */
static uint64_t member_value(const PackField *f, const void *member) {
        switch (f->type) {
        case PACK_BOOL:
                return *(const bool *) member;
        case PACK_U32:
                return *(const uint32_t *) member;
        case PACK_U64:
                return *(const uint64_t *) member;
        default:
                return *(char *const *) member != NULL;
        }
}

static void pack_members(Pack *p, const PackField *fields, size_t n_fields, const void *object,
                         bool all) {
        for (const PackField *f = fields; f < fields + n_fields; f++) {
                const void *member = (const char *) object + f->offset;
                uint64_t value = member_value(f, member);

                if (value == 0 && !all)
                        continue;
                if (f->type == PACK_STRING)
                        pack_string(p, f->key, *(char *const *) member);
                else
                        pack_u64(p, f->key, value);
        }
}

void pack_struct(Pack *p, const PackField *fields, size_t n_fields, const void *object) {
        pack_members(p, fields, n_fields, object, true);
}

void pack_struct_set(Pack *p, const PackField *fields, size_t n_fields, const void *object) {
        pack_members(p, fields, n_fields, object, false);
}

void pack_clear(Pack *p) {
        p->n = 0;
        p->failed = false;
}

void pack_done(Pack *p) {
        free(p->data);
        *p = (Pack){};
}

/* ---- reading ---- */

static bool field_is_sound(const Field *f) {
        switch (f->tag) {
        case TAG_INTEGER:
                return f->n_value == sizeof(uint64_t);
        case TAG_STRING:
                return f->n_value == 0 ||
                       strnlen((const char *) f->value, f->n_value) + 1 == f->n_value;
        case TAG_ELEMENT:
                return unpack_is_valid(&(Unpack){ f->value, f->n_value });
        default:
                return f->tag == TAG_BYTES;
        }
}

/* The field at *place, which is advanced; false at the end and where there is no whole field. */
static bool unpack_field(const Unpack *u, size_t *place, Field *ret) {
        size_t left = u->n - *place;
        FieldHead head;

        if (left < sizeof(head))
                return false;
        memcpy(&head, u->data + *place, sizeof(head));
        left -= sizeof(head);
        if (head.n_key == 0 || head.n_key > left || head.n_value > left - head.n_key)
                return false;
        ret->key = (const char *) u->data + *place + sizeof(head);
        if (strnlen(ret->key, head.n_key) + 1 != head.n_key)
                return false;
        ret->tag = head.tag;
        ret->value = (const uint8_t *) ret->key + head.n_key;
        ret->n_value = head.n_value;
        *place += sizeof(head) + head.n_key + head.n_value;
        return true;
}

bool unpack_is_valid(const Unpack *u) {
        size_t place = 0;
        Field f;

        while (unpack_field(u, &place, &f))
                if (!field_is_sound(&f))
                        return false;
        return place == u->n;
}

static bool unpack_find(const Unpack *u, const char *key, uint8_t tag, size_t *place, Field *ret) {
        while (unpack_field(u, place, ret))
                if (ret->tag == tag && strcmp(ret->key, key) == 0)
                        return true;
        return false;
}

uint64_t unpack_u64(const Unpack *u, const char *key, uint64_t otherwise) {
        size_t place = 0;
        Field f;

        if (unpack_find(u, key, TAG_INTEGER, &place, &f))
                memcpy(&otherwise, f.value, sizeof(otherwise));
        return otherwise;
}

const char *unpack_string(const Unpack *u, const char *key) {
        size_t place = 0;
        Field f;

        return unpack_find(u, key, TAG_STRING, &place, &f) && f.n_value > 0 ? (const char *) f.value
                                                                            : NULL;
}

const void *unpack_bytes(const Unpack *u, const char *key, size_t *ret_n) {
        size_t place = 0;
        Field f;

        if (!unpack_find(u, key, TAG_BYTES, &place, &f))
                return NULL;
        *ret_n = f.n_value;
        return f.value;
}

bool unpack_next(const Unpack *u, const char *key, size_t *place, Unpack *ret) {
        Field f;

        if (!unpack_find(u, key, TAG_ELEMENT, place, &f))
                return false;
        *ret = (Unpack){ f.value, f.n_value };
        return true;
}

static int unpack_integer(const Field *field, PackType type, void *member) {
        uint64_t value;

        if (field->tag != TAG_INTEGER)
                return -EBADMSG;
        memcpy(&value, field->value, sizeof(value));
        if (type == PACK_U64) {
                *(uint64_t *) member = value;
                return 0;
        }
        if (value > (type == PACK_BOOL ? 1 : UINT32_MAX))
                return -EBADMSG;
        if (type == PACK_BOOL)
                *(bool *) member = value;
        else
                *(uint32_t *) member = (uint32_t) value;
        return 0;
}

static int unpack_text(const Field *field, char **member) {
        char *text = NULL;

        if (field->tag != TAG_STRING)
                return -EBADMSG;
        if (field->n_value > 0) {
                text = strdup((const char *) field->value);
                if (!text)
                        return -ENOMEM;
        }
        free(*member);
        *member = text;
        return 0;
}

int unpack_struct(const Unpack *u, const PackField *fields, size_t n_fields, void *object) {
        size_t place = 0;
        Field field;

        while (unpack_field(u, &place, &field))
                for (const PackField *f = fields; f < fields + n_fields; f++) {
                        void *member = (char *) object + f->offset;
                        int r;

                        if (strcmp(f->key, field.key) != 0)
                                continue;
                        r = f->type == PACK_STRING ? unpack_text(&field, member)
                                                   : unpack_integer(&field, f->type, member);
                        if (r < 0)
                                return r;
                }
        return 0;
}

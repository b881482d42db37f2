/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A serialized object: a sequence of named fields.
 *
 * A reader ignores fields that it does not know, and a member without a field keeps its value; so a
 * version reads what another one wrote. Integers are in the host's byte order: nothing leaves the
 * host.
 */

#include "core/util.h"

typedef struct Pack Pack;
typedef struct Unpack Unpack;
typedef struct PackField PackField;

typedef enum PackType {
        PACK_BOOL,
        PACK_U32, /* enums, uid_t, pid_t, int */
        PACK_U64,
        PACK_STRING, /* char *, may be NULL; a reader frees it */
        _PACK_TYPE_MAX,
} PackType;

/* All zero: empty. Ends with pack_done(). */
struct Pack {
        uint8_t *data;
        size_t n, room;
        bool failed; /* out of memory: the contents are invalid */
};

/* Part of a Pack, borrowed. */
struct Unpack {
        const uint8_t *data;
        size_t n;
};

/* A member of a struct. */
struct PackField {
        const char *key;
        PackType type;
        size_t offset;
};

#define PACK_FIELD(type_, key_, struct_, member_)                                                  \
        { .key = (key_), .type = (type_), .offset = offsetof(struct_, member_) }

void pack_struct(Pack *p, const PackField *fields, size_t n_fields, const void *object);

/* The same without the members that are 0, false or NULL: for readers whose object is zeroed. Most
 * members of most objects are. */
void pack_struct_set(Pack *p, const PackField *fields, size_t n_fields, const void *object);
void pack_u64(Pack *p, const char *key, uint64_t value);
void pack_string(Pack *p, const char *key, const char *value);
void pack_bytes(Pack *p, const char *key, const void *data, size_t n);

/* Fields up to pack_end() belong to a new element of the list key. */
size_t pack_begin(Pack *p, const char *key);
void pack_end(Pack *p, size_t begin);

void pack_clear(Pack *p); /* makes it empty, keeps the memory */
void pack_done(Pack *p);

/* Whether it is a sequence of whole fields. To be asked first of all of data of another process. */
bool unpack_is_valid(const Unpack *u);

/* -EBADMSG: a field has another type or does not fit; -ENOMEM. Strings of the object that are
 * replaced are freed. */
int unpack_struct(const Unpack *u, const PackField *fields, size_t n_fields, void *object);
uint64_t unpack_u64(const Unpack *u, const char *key, uint64_t otherwise);
const char *unpack_string(const Unpack *u, const char *key); /* borrowed; NULL: no such field */
const void *unpack_bytes(const Unpack *u, const char *key, size_t *ret_n); /* likewise */

/* The next element of the list key; *place is 0 at first. */
bool unpack_next(const Unpack *u, const char *key, size_t *place, Unpack *ret);

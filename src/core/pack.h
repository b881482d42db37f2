/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What is written down of an object: a sequence of named fields.
 *
 * A reader takes the fields that it knows and leaves others alone, and what is missing keeps the
 * value that it had: so one version reads what the one before has written. Integers are in the
 * host's order, for nothing leaves it.
 */

#include "core/util.h"

typedef struct Pack Pack;
typedef struct Unpack Unpack;
typedef struct PackField PackField;

typedef enum PackType {
        PACK_BOOL,
        PACK_U32, /* enums, uid_t, pid_t, int */
        PACK_U64,
        PACK_STRING, /* char *, NULL too: read, it is the reader's to free */
        _PACK_TYPE_MAX,
} PackType;

/* All zero is an empty one; free data. */
struct Pack {
        uint8_t *data;
        size_t n, room;
        bool failed; /* out of memory: what is in it is worthless */
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

/* The same without what is 0, false or NULL: for readers whose object is that to begin with. Of
 * most objects it is most. */
void pack_struct_set(Pack *p, const PackField *fields, size_t n_fields, const void *object);
void pack_u64(Pack *p, const char *key, uint64_t value);
void pack_string(Pack *p, const char *key, const char *value);
void pack_bytes(Pack *p, const char *key, const void *data, size_t n);

/* Fields up to pack_end() are those of one more element of the list of that name. */
size_t pack_begin(Pack *p, const char *key);
void pack_end(Pack *p, size_t begin);

void pack_clear(Pack *p); /* empty, the memory is kept */
void pack_done(Pack *p);

/* Whether it is a sequence of whole fields: to be asked before anything else, of what somebody else
 * has written. */
bool unpack_is_valid(const Unpack *u);

/* -EBADMSG when a field has another type or does not fit, -ENOMEM. Strings that the object had are
 * freed when they are replaced. */
int unpack_struct(const Unpack *u, const PackField *fields, size_t n_fields, void *object);
uint64_t unpack_u64(const Unpack *u, const char *key, uint64_t otherwise);
const char *unpack_string(const Unpack *u, const char *key); /* borrowed; NULL: there is none */
const void *unpack_bytes(const Unpack *u, const char *key, size_t *ret_n); /* likewise */

/* The next element of a list: *place is 0 at first. */
bool unpack_next(const Unpack *u, const char *key, size_t *place, Unpack *ret);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How a counter set and its users are written to the store.
 */

#include "core/pack.h"

/* A set and a user as they are written. */
typedef struct SavedSet {
        uint32_t uid;
        bool persistent, handed_out, configured, monitor, by_hold;
        char *name, *cpus;
        uint32_t priority, yields_to; /* of a monitor */
        uint64_t seq;                 /* likewise */
} SavedSet;

typedef struct SavedUser {
        char *name;
        uint32_t uid;
        uint32_t pid;
        bool other;
        bool opener; /* whose the counters are */
} SavedUser;

_unused_ static const PackField set_fields[] = {
        PACK_FIELD(PACK_U32, "uid", SavedSet, uid),
        PACK_FIELD(PACK_BOOL, "persistent", SavedSet, persistent),
        PACK_FIELD(PACK_BOOL, "handed-out", SavedSet, handed_out),
        PACK_FIELD(PACK_BOOL, "configured", SavedSet, configured),
        PACK_FIELD(PACK_BOOL, "monitor", SavedSet, monitor),
        PACK_FIELD(PACK_BOOL, "by-hold", SavedSet, by_hold),
        PACK_FIELD(PACK_STRING, "name", SavedSet, name),
        PACK_FIELD(PACK_STRING, "cpus", SavedSet, cpus),
        PACK_FIELD(PACK_U32, "priority", SavedSet, priority),
        PACK_FIELD(PACK_U32, "yields-to", SavedSet, yields_to),
        PACK_FIELD(PACK_U64, "seq", SavedSet, seq),
};

_unused_ static const PackField user_fields[] = {
        PACK_FIELD(PACK_STRING, "name", SavedUser, name),
        PACK_FIELD(PACK_U32, "uid", SavedUser, uid),
        PACK_FIELD(PACK_U32, "pid", SavedUser, pid),
        PACK_FIELD(PACK_BOOL, "other", SavedUser, other),
        PACK_FIELD(PACK_BOOL, "opener", SavedUser, opener),
};

static inline void saved_set_done(SavedSet *saved) {
        free(saved->name);
        free(saved->cpus);
}

static inline void saved_user_done(SavedUser *saved) {
        free(saved->name);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The values in a rubbish call: what chance makes of the types, of hints by name, and of what was
 * learnt.
 */

#include "rubbish.h"

struct Rubbish {
        GPtrArray *nodes;         /* GDBusNodeInfo */
        GArray *methods;          /* Method */
        GPtrArray *names;         /* of interfaces and properties: borrowed */
        GPtrArray *paths, *words; /* learnt */
        GArray *pids;             /* pid_t */
        GArray *descriptors;      /* int: leases, streams and events that were received */
        const char *member;       /* that the message being made calls */
        const char *name;         /* of the argument or option that is being made */
        bool careful;             /* the message is to be nearly right */
        unsigned n_descriptors;   /* that are in it */
        size_t n_bytes;           /* of long words in it */
};

/* A number from 0 to n - 1. */
unsigned rubbish_below(size_t n);

/* One that was there, of this kind if possible ("hold", "manager"); or any other. To be freed. */
char *rubbish_path(const Rubbish *r, const char *kind);

/* Puts a value of the type into the message, for the argument of that name. */
void rubbish_append(Rubbish *r, sd_bus_message *m, const char *type, const char *name);

/* One of any type. */
void rubbish_append_any(Rubbish *r, sd_bus_message *m);

/* What cannot fail, but for want of memory. */
void rubbish_check(int r);

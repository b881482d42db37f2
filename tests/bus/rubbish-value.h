/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The values in a rubbish call: random ones of its types, guided by names and by earlier replies.
 */

#include "rubbish.h"

struct Rubbish {
        GPtrArray *nodes;         /* GDBusNodeInfo */
        GArray *methods;          /* Method */
        GPtrArray *names;         /* of interfaces and properties: borrowed */
        GPtrArray *paths, *words; /* learnt */
        GArray *pids;             /* pid_t */
        GArray *descriptors;      /* int: leases, streams and events that were received */
        const char *member;       /* that the message under construction calls */
        const char *name;         /* of the argument or option under construction */
        bool soft;                /* without breakpoints */
        bool careful;             /* the message shall be nearly right */
        unsigned n_descriptors;   /* that are in it */
        size_t n_bytes;           /* of long texts in it, */
        size_t bytes_max;         /* of so many at most */
};

/* A number from 0 to n - 1. */
unsigned rubbish_below(size_t n);

/* A known path, of this kind if possible ("hold", "manager"), or any other. The caller frees it. */
char *rubbish_path(const Rubbish *r, const char *kind);

/* Puts a value of the type into the message, for the argument of that name. */
void rubbish_append(Rubbish *r, sd_bus_message *m, const char *type, const char *name);

/* One of any type. */
void rubbish_append_any(Rubbish *r, sd_bus_message *m);

/* For calls that can fail only for lack of memory. */
void rubbish_check(int r);

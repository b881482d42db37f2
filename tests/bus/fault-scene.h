/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One run of an operation while calls of the service fail (tests/fault/fault.h): its resources, and
 * calls that may be refused because of the fault.
 */

#include "event-util.h"

#include "fault/fault.h"

#define SETTLE_USEC (5 * G_USEC_PER_SEC)

/* One run of an operation. */
typedef struct Scene {
        Client *client, *other;
        Actor *target;
        char *path, *second, *id;
        int fd, fd2;
        bool failed; /* some call was answered with an error */
        char error[64];
} Scene;

typedef struct Operation {
        const char *name, *user;
        void (*prepare)(Scene *s); /* nothing fails yet */
        void (*run)(Scene *s);
        void (*after)(Scene *s); /* nothing fails any more; only where run did not */
        void (*undo)(Scene *s);  /* in any case */
        bool thorough;           /* each call for memory fails, whatever the stride */
} Operation;

extern Fault *fault;
extern pid_t service;
extern Client *root;

/* The operation that is tried, and its failures: all are reported, not only the first. */
extern const char *trying, *trying_way;
extern int64_t trying_call;
extern unsigned n_wrong;

__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

/* Fails if it never becomes true. */
#define settle(condition)                                                                          \
        settle_for(({                                                                              \
                           gint64 _end = g_get_monotonic_time() + SETTLE_USEC;                     \
                           bool _is;                                                               \
                           while (!(_is = (condition)) && g_get_monotonic_time() < _end)           \
                                   g_usleep(500);                                                  \
                           _is;                                                                    \
                   }),                                                                             \
                   #condition)

void settle_for(bool is, const char *condition);

/* The reply, or NULL if this call or an earlier one failed. */
sd_bus_message *try_message(Scene *s, Client *c, sd_bus_message *m);
sd_bus_message *try_call(Scene *s, Client *c, const char *path, const char *interface,
                         const char *member, const char *types, ...);

#define TRY(s, ...) sd_bus_message_unref(try_call(s, (s)->client, __VA_ARGS__))

/* Takes the reply over: its path ("o"), the first of its paths ("ao"), or its descriptor as well
 * ("oh"). */
void keep_path(Scene *s, sd_bus_message *reply, const char *types);

#define TRY_PATH(s, types, ...) keep_path(s, try_call(s, (s)->client, __VA_ARGS__), types)

void calm(void); /* nothing fails any more */
void ping(void); /* the service has handled all earlier messages */

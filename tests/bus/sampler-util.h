/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * For tests of samplers: a Sampler knows what it has received, and checks every record that it
 * reads.
 */

#include "bus-util.h"

#include <perfalloc/sample.h>

#define SAMPLER PERFALLOC_SAMPLER_INTERFACE

#define MSEC         USEC_PER_MSEC
#define COUNTERS_MAX 4

#define NO_COUNTERS       ((const char *const[]){ NULL })
#define ONE_COUNTER(path) ((const char *const[]){ (path), NULL })

typedef struct Sampler {
        Client *client;
        char *path;
        int stream;
        uint64_t interval, start;
        uint64_t next;         /* the next tick if none is missed */
        uint64_t told, missed; /* so far */
} Sampler;

typedef union Record {
        struct perfalloc_sample head;
        struct {
                uint64_t words[4]; /* the head's */
                struct perfalloc_reading readings[COUNTERS_MAX];
        };
} Record;

uint64_t boottime_usec(void);
void await_time(uint64_t usec); /* of that clock */

/* types is "a{sv}". */
Sampler *sampler_create(Client *c, const char *const *counters, uint64_t interval,
                        const char *types, ...);
void sampler_refused(Client *c, const char *error, const char *const *counters, uint64_t interval,
                     const char *types, ...);
void sampler_free(Sampler *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Sampler, sampler_free)

uint64_t sampler_number(const Sampler *s, const char *property);
void sampler_close(const Sampler *s); /* which stays to be read */

void samplers_do(Client *c, const char *method);
bool samplers_any(Client *c); /* of its own */

bool record_get(Sampler *s, Record *ret); /* false: there is none now */
void record_await(Sampler *s, Record *ret);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The last record of a sampler in memory that its client maps (struct perfalloc_map).
 *
 * Only the service can write to it: the client's descriptor is open for reading, and the file's
 * mode keeps everybody but the service and root from opening it for writing. Its size is sealed,
 * so that the service cannot run into its end. Nothing in it is read back but whether the last
 * record was written as a whole.
 */

#include <perfalloc/sample.h>

#include "core/util.h"

typedef struct Mapping Mapping;

struct Mapping {
        struct perfalloc_map *map; /* NULL: none */
        size_t size;
        const struct perfalloc_sample *record; /* which is published */
        size_t record_size;
};

#define MAPPING_NULL ((Mapping){})

/* ret_fd is for mapping_open() of the next run, ret_client for the client; the caller closes both.
 * The record must outlive the mapping. */
int mapping_new(const struct perfalloc_sample *record, size_t record_size, Mapping *ret,
                int *ret_fd, int *ret_client);

/* Opens the mapping of an earlier run; fd stays the caller's. Publishes the record if that run
 * ended while it did. -EBADMSG: it is not a mapping, or not one of that size. */
int mapping_open(int fd, const struct perfalloc_sample *record, size_t record_size, Mapping *ret);
void mapping_done(Mapping *m);

/* The record as it is now becomes visible for the client, as a whole. */
void mapping_publish(Mapping *m);

/* Tells the client that no other record follows. */
void mapping_end(Mapping *m);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How a sampler and its client are written to the store.
 */

#include "core/pack.h"
#include "service/sampler/sampler-object.h"

/* The descriptors that are kept of a sampler. */
enum {
        SAMPLER_FD_STREAM,
        SAMPLER_FD_SEND_LOG,
        _SAMPLER_FD_MAX,
};

/* A client, as it is written down. */
typedef struct ClientName {
        char *name;
        uint32_t uid, pid;
} ClientName;

static inline void client_name_done(ClientName *who) {
        free(who->name);
}

_unused_ static const PackField client_fields[] = {
        PACK_FIELD(PACK_STRING, "peer", ClientName, name),
        PACK_FIELD(PACK_U32, "uid", ClientName, uid),
        PACK_FIELD(PACK_U32, "pid", ClientName, pid),
};

_unused_ static const PackField sampler_fields[] = {
        PACK_FIELD(PACK_U64, "start_usec", Sampler, tick.start_usec),
        PACK_FIELD(PACK_U64, "interval_usec", Sampler, tick.interval_usec),
        PACK_FIELD(PACK_BOOL, "signal", Sampler, signal),
};

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How a registered monitor is written to the store.
 */

#include "core/pack.h"
#include "service/monitor/monitor-object.h"

/* Of the client that registered it. */
typedef struct Registrant {
        char *name;
        uint32_t pid;
} Registrant;

static inline void registrant_done(Registrant *who) {
        free(who->name);
}

_unused_ static const PackField monitor_fields[] = {
        PACK_FIELD(PACK_STRING, "name", Monitor, name),
        PACK_FIELD(PACK_U32, "uid", Monitor, object.uid),
        PACK_FIELD(PACK_U32, "priority", Monitor, yielder.plan.priority),
        PACK_FIELD(PACK_U64, "seq", Monitor, yielder.plan.seq),
        PACK_FIELD(PACK_U64, "asked_for", Monitor, asked_for),
};

_unused_ static const PackField registrant_fields[] = {
        PACK_FIELD(PACK_STRING, "peer", Registrant, name),
        PACK_FIELD(PACK_U32, "pid", Registrant, pid),
};

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Bridges: yielders for software that does not know this service. They make it yield to every hold,
 * whatever its scope, by something that it checks: a lock, the owner of a file, a sysctl.
 *
 * Most of this software does not answer. Its bridge counts as yielded after a grace, the longest
 * interval between two checks. A bridge that fails tries again until the hold ends; where the
 * software is absent, holds do not wait for it.
 *
 * What a bridge has taken survives a restart of the service: its host stores it, and gives it to
 * the new bridge, which continues with it.
 */

#include <systemd/sd-event.h>

#include "core/pack.h"
#include "yield/yielders.h"

typedef struct Bridge Bridge;
typedef struct BridgeHost BridgeHost;
typedef struct BridgeOps BridgeOps;
typedef struct BridgePast BridgePast;

typedef enum BridgeAnswer {
        BRIDGE_ABSENT, /* there is nothing to make yield */
        BRIDGE_TAKEN,  /* done; the grace begins */
        BRIDGE_ASKED,  /* requested: bridge_answered() follows */
        BRIDGE_RETRY,  /* not possible now */
} BridgeAnswer;

/* What an earlier run stored of a bridge that had taken something. */
struct BridgePast {
        Unpack state; /* bridge_pack() */
        int fd;       /* bridge_fd(), -1: none. A taker leaves -1 */
};

struct BridgeOps {
        const char *name; /* as in Features */

        /* Makes the software yield to a hold of uid. */
        BridgeAnswer (*take)(Bridge *b, uid_t uid);

        /* Undoes it. */
        void (*release)(Bridge *b);

        /* Continues with what an earlier run took. wanted: there are still holds; else release()
         * follows. BRIDGE_TAKEN: it is still taken, and the grace continues; BRIDGE_ASKED: it was
         * lost and is requested again; BRIDGE_ABSENT: nothing is left of it. */
        BridgeAnswer (*restore)(Bridge *b, BridgePast *past, bool wanted);

        /* While taken: a descriptor that must stay open even while no service runs. May be NULL. */
        int (*fd)(const Bridge *b);

        /* While taken: the holder has changed. May be NULL. */
        void (*hand_over)(Bridge *b, uid_t uid);

        /* Whether the software is there and the bridge can act on it. */
        bool (*is_active)(const Bridge *b);

        /* The obstacle, when the deadline has passed. */
        void (*describe)(const Bridge *b, pid_t *ret_pid, char *buffer, size_t size);

        void (*free)(Bridge *b);
};

/* What bridges need of their owner. */
struct BridgeHost {
        Yielders *yielders;
        sd_event *event;
        uid_t (*holder)(void *userdata); /* the owner of the oldest hold */
        void (*say)(void *userdata, int priority, const char *text); /* to the journal */
        void *userdata;
        void (*changed)(void *userdata, Bridge *b); /* of taken; may be NULL */
        BridgePast *past;                           /* of the bridge being made; NULL: none */
};

struct Bridge {
        Yielder yielder;
        const BridgeOps *ops;
        const BridgeHost *host;
        uint64_t grace_usec;
        uint64_t retry_usec;    /* until the next attempt */
        sd_event_source *timer; /* end of the grace, or next attempt */
        bool taken;
        uint64_t grace_until_usec; /* CLOCK_MONOTONIC, while taken */
        char *said;                /* the last message, which is not repeated */
};

/* Fills in b, which is in zeroed memory, and enrolls it. If holds are active it takes its part, or
 * continues with what an earlier run took (host->past); else it releases that. On failure b is
 * unchanged. -ENOMEM. */
int bridge_init(Bridge *b, const BridgeOps *ops, const BridgeHost *host, uint64_t grace_usec);

/* Releases what is taken, and frees the bridge. Returns NULL. */
Bridge *bridge_free(Bridge *b);
DEFINE_CLEANUP(Bridge *, bridge_free)

/* Only frees the bridge: what is taken stays so for the next run. */
void bridge_drop(Bridge *b);

/* What must be stored to continue with what it has taken. bridge_fd(): -1: no descriptor. */
void bridge_pack(const Bridge *b, Pack *p);
int bridge_fd(const Bridge *b);

/* What was requested (BRIDGE_ASKED) is done. */
void bridge_answered(Bridge *b);

/* The software may have appeared: takes its part now if there are holds; they do not wait. */
void bridge_try(Bridge *b);

/* The oldest hold is another user's now. */
void bridge_hand_over(Bridge *b, uid_t uid);

/* Writes a message to the journal, unless it was the last one. NULL: the trouble is over. */
void bridge_say(Bridge *b, int priority, const char *text);

static inline bool bridge_is_active(const Bridge *b) {
        return b->ops->is_active(b);
}

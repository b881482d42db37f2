/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Bridges: yielders that stand for software which knows nothing of this service. They give way to
 * every hold, whatever its scope, by what that software looks at: a lock, the owner of a file, a
 * sysctl.
 *
 * Most of that software does not answer. Its bridge counts as yielded after a grace, the longest
 * time that the software takes to look. A bridge that cannot do its part tries again until the hold
 * ends; where there is nothing to tell, nobody waits.
 *
 * What a bridge has taken outlives the service: where they live keeps it, and hands it to the
 * bridge that is made after a restart, which goes on with it.
 */

#include <systemd/sd-event.h>

#include "core/pack.h"
#include "yield/yielders.h"

typedef struct Bridge Bridge;
typedef struct BridgeHost BridgeHost;
typedef struct BridgeOps BridgeOps;
typedef struct BridgePast BridgePast;

typedef enum BridgeAnswer {
        BRIDGE_ABSENT, /* nobody is there who would have to know */
        BRIDGE_TAKEN,  /* done; the grace begins */
        BRIDGE_ASKED,  /* somebody does it and answers: bridge_answered() follows */
        BRIDGE_RETRY,  /* not possible now */
} BridgeAnswer;

/* What an earlier run has left of a bridge that had taken its part. */
struct BridgePast {
        Unpack state; /* bridge_pack() */
        int fd;       /* bridge_fd(); -1: none. Whoever takes it puts that in its place */
};

struct BridgeOps {
        const char *name; /* as in Features */

        /* Makes the other side give way to a hold of uid. */
        BridgeAnswer (*take)(Bridge *b, uid_t uid);

        /* Undoes it. */
        void (*release)(Bridge *b);

        /* Goes on with what an earlier run took. wanted: there still are holds; else release()
         * follows. BRIDGE_TAKEN: nothing was lost, the grace goes on too; BRIDGE_ASKED: it was, and
         * is being done again; BRIDGE_ABSENT: nothing is left of it. */
        BridgeAnswer (*restore)(Bridge *b, BridgePast *past, bool wanted);

        /* While taken: the descriptor that must stay open, also while no service runs. NULL: none
         * has to. */
        int (*fd)(const Bridge *b);

        /* While taken: the holder is another one now. NULL: that is all one. */
        void (*hand_over)(Bridge *b, uid_t uid);

        /* Whether the other side is there and the bridge can do its part. */
        bool (*is_active)(const Bridge *b);

        /* Who is in the way, when the time is up. */
        void (*describe)(const Bridge *b, pid_t *ret_pid, char *buffer, size_t size);

        void (*free)(Bridge *b);
};

/* What bridges need from where they live. */
struct BridgeHost {
        Yielders *roster;
        sd_event *event;
        uid_t (*holder)(void *userdata); /* whose hold is the oldest now */
        void (*say)(void *userdata, int priority, const char *text); /* in the journal */
        void *userdata;
        void (*changed)(void *userdata, Bridge *b); /* taken is another; may be NULL */
        BridgePast *past;                           /* of the one that is being made; NULL: none */
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
        char *said;                /* what was said last, and is not said again */
};

/* Fills in b, which is in zeroed memory, and enrolls it; when holds are active it takes its part at
 * once, or goes on with it (host->past). What an earlier run took is released when there are no
 * holds any more. After a failure b is as before. -ENOMEM. */
int bridge_init(Bridge *b, const BridgeOps *ops, const BridgeHost *host, uint64_t grace_usec);

/* Releases what is taken, and frees it. Returns NULL. */
Bridge *bridge_free(Bridge *b);
DEFINE_CLEANUP(Bridge *, bridge_free)

/* Frees it alone: what is taken stays so, for the next run of the service. */
void bridge_drop(Bridge *b);

/* What has to be known of it, and kept open, to go on with what it has taken. -1: no descriptor. */
void bridge_pack(const Bridge *b, Pack *p);
int bridge_fd(const Bridge *b);

/* The other side has answered BRIDGE_ASKED. */
void bridge_answered(Bridge *b);

/* Somebody may have turned up who was not there: takes its part now if there are holds. Nobody
 * waits for that. */
void bridge_try(Bridge *b);

/* The oldest hold is of another user now. */
void bridge_hand_over(Bridge *b, uid_t uid);

/* Says something in the journal, once: again only when something else was said meanwhile. NULL: all
 * is well again. */
void bridge_say(Bridge *b, int priority, const char *text);

static inline bool bridge_is_active(const Bridge *b) {
        return b->ops->is_active(b);
}

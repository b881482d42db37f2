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
 */

#include <systemd/sd-event.h>

#include "yield/roster.h"

typedef struct Bridge Bridge;
typedef struct BridgeHost BridgeHost;
typedef struct BridgeOps BridgeOps;

typedef enum BridgeAnswer {
        BRIDGE_ABSENT, /* nobody is there who would have to know */
        BRIDGE_TAKEN,  /* done; the grace begins */
        BRIDGE_ASKED,  /* somebody does it and answers: bridge_answered() follows */
        BRIDGE_RETRY,  /* not possible now */
} BridgeAnswer;

struct BridgeOps {
        const char *name; /* as in Features */

        /* Makes the other side give way to a hold of uid. */
        BridgeAnswer (*take)(Bridge *b, uid_t uid);

        /* Undoes it. */
        void (*release)(Bridge *b);

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
        Roster *roster;
        sd_event *event;
        uid_t (*holder)(void *userdata); /* whose hold is the oldest now */
        void (*say)(void *userdata, int priority, const char *text); /* in the journal */
        void *userdata;
};

struct Bridge {
        Yielder yielder;
        const BridgeOps *ops;
        const BridgeHost *host;
        uint64_t grace_usec;
        uint64_t retry_usec;    /* until the next attempt */
        sd_event_source *timer; /* end of the grace, or next attempt */
        bool taken;
        char *said; /* what was said last, and is not said again */
};

/* Fills in b, which is in zeroed memory, and enrolls it; when holds are active it takes its part at
 * once. After a failure b is as before. -ENOMEM. */
int bridge_init(Bridge *b, const BridgeOps *ops, const BridgeHost *host, uint64_t grace_usec);

/* Releases what is taken, and frees it. Returns NULL. */
Bridge *bridge_free(Bridge *b);
DEFINE_CLEANUP(Bridge *, bridge_free)

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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * polkit's yes to one of ACTIONS_KEPT, cached for the same connection, action and details. An entry
 * is valid until polkit's Changed signal, the connection's end, or AUTH_CACHE_USEC.
 *
 * An entry refers to its peer, so a client that opens one event after another causes no further
 * calls to the bus or to polkit.
 */

#include "service/auth/action.h"
#include "service/auth/details.h"
#include "service/bus/peer.h"

typedef struct AuthCacheEntry AuthCacheEntry;
typedef struct AuthCache AuthCache;

#define AUTH_CACHE_USEC     (10 * USEC_PER_SEC)
#define AUTH_CACHE_USER_MAX 32  /* of one user, whose oldest is dropped */
#define AUTH_CACHE_MAX      128 /* of all users, the oldest is dropped */

TAILQ_HEAD(AuthCacheList, AuthCacheEntry);

struct AuthCache {
        struct AuthCacheList list; /* oldest first */
        size_t n;
        sd_event_source *timer;
};

int auth_cache_init(AuthCache *c, sd_event *event);
void auth_cache_done(AuthCache *c);

bool auth_cache_have(AuthCache *c, const Peer *peer, Action action, const Details *details);

/* Without memory nothing is cached. Actions other than ACTIONS_KEPT are ignored. */
void auth_cache_keep(AuthCache *c, Peer *peer, Action action, const Details *details);

void auth_cache_forget_peer(AuthCache *c, const Peer *peer);
void auth_cache_clear(AuthCache *c);

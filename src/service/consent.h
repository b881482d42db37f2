/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The plain yeses of polkit that may be kept for a moment: to one of ACTIONS_KEPT, for the same
 * connection, action and details, until polkit's Changed signal, the connection's end or
 * CONSENT_KEPT_USEC.
 *
 * What is kept keeps its peer known, so that a client that opens one event after the other costs
 * neither the bus nor polkit a question each.
 */

#include "service/action.h"
#include "service/details.h"
#include "service/peer.h"

typedef struct Consent Consent;
typedef struct Consents Consents;

#define CONSENT_KEPT_USEC (10 * USEC_PER_SEC)
#define CONSENTS_USER_MAX 32  /* of one user; his oldest makes room */
#define CONSENTS_MAX      128 /* of all peers; the oldest makes room */

TAILQ_HEAD(ConsentList, Consent);

struct Consents {
        struct ConsentList list; /* oldest first */
        size_t n;
        sd_event_source *timer;
};

int consents_init(Consents *c, sd_event *event);
void consents_done(Consents *c);

bool consents_have(Consents *c, const Peer *peer, Action action, const Details *details);

/* Forgetting one is harmless, so is not having memory for it. Other actions than ACTIONS_KEPT are
 * ignored. */
void consents_keep(Consents *c, Peer *peer, Action action, const Details *details);

void consents_forget_peer(Consents *c, const Peer *peer);
void consents_clear(Consents *c);

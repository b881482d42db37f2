/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Denials in the journal: the first of a user and action, and then one in DENIAL_QUIET_USEC. Who
 * asks a thousand times does not push out what others have to say.
 */

#include "core/refusal.h"
#include "service/bus/peer.h"

#define DENIAL_QUIET_USEC (60 * USEC_PER_SEC)

/* actions: bits of Action that were asked for. */
void denial_log(const Peer *peer, unsigned actions, const Refusal *why);

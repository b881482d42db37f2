/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Logs denials. The first one of a user and actions is logged, then one in DENIAL_QUIET_USEC, so
 * that a flood of denials does not push out other entries.
 */

#include "core/refusal.h"
#include "service/bus/peer.h"

#define DENIAL_QUIET_USEC (60 * USEC_PER_SEC)

/* actions: bits of Action that were asked for. */
void audit_denial(const Peer *peer, unsigned actions, const Refusal *why);

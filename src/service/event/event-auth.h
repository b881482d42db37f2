/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The authorization of OpenEvent and OpenEvents.
 */

#include "service/bus/request.h"
#include "service/event/event-open.h"

/* target: the uid of the target's process. untraceable: why the caller may not trace it, or empty.
 * -EINPROGRESS: polkit is asked, and the call comes back. Refusals are those of event_check_hold()
 * and auth_check(), and name the fields of the attr that needed what was denied. */
int event_authorize(const EventOpening *o, const Request *call, uid_t target,
                    const char *untraceable, Refusal *why);

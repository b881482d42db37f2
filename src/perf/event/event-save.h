/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writes an event down, and reads it in a later run.
 */

#include "core/pack.h"
#include "perf/event/event.h"

void event_save(const Event *e, Pack *p);

/* -EBADMSG: it is no event; -ENODEV: its PMU is gone; -ENOMEM. */
int event_load(const Unpack *u, const PmuTable *pmus, Event *ret);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * GetManagedObjects(), answered in slices. libsystemd's own answer takes as long as there are
 * objects, in one turn of the loop.
 *
 * A client that follows the signals must know all objects and properties once it has the reply. So
 * whatever changes between the moment an object is put into the reply and the reply itself is
 * signalled after the reply:
 *
 * - Kinds of which there are thousands queue their signals (object.h: tell). All that is queued is
 *   sent first. From then on until the reply is sent the queue stands still. The reply has the
 *   objects that there were at that moment and that were not closed before their turn.
 * - Objects of all other kinds are put into the reply in its last slice.
 *
 * Such calls are answered one after the other: between two of them the queue moves on.
 */

#include "service/bus/object.h"
#include "service/util/context.h"

typedef struct Managed Managed;

/* For the objects in context->objects. To be called after context->requests was made. */
int managed_new(Context *context, Managed **ret);
Managed *managed_free(Managed *all); /* no call is under way */

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who may read properties that are for the owner of an object, root and whoever polkit allows
 * manage.
 *
 * A property is put into a reply at once, so polkit is asked before: by a filter that keeps the
 * message back, when the reply would hold such properties of other users' objects.
 */

#include "service/util/context.h"

/* Before scheduler_new(), whose filter must run first. */
int redaction_new(Context *context, Redaction **ret);
Redaction *redaction_free(Redaction *r);

/* Whether the sender of the message that is being answered may read what is for uid. Nobody may
 * while a signal to everybody is put together. */
bool redaction_allows(const Context *context, uid_t uid);

/* InterfacesAdded for everybody: sd_bus_emit_object_added(). */
void redaction_emit_added(Context *context, const char *path);

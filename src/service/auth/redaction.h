/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Hides properties that are for an object's owner, root, and users with manage.
 *
 * A property's getter cannot wait for polkit. So a filter asks polkit first, and holds back the
 * message, if the reply would contain such properties of other users' objects.
 */

#include "service/util/context.h"

/* To be called before scheduler_new(), whose filter must run first. */
int redaction_new(Context *context, Redaction **ret);
Redaction *redaction_free(Redaction *r);

/* Whether the sender of the message that is being answered may read what is for uid. A signal is
 * for everybody. */
bool redaction_allows(const Context *context, sd_bus_message *reply, uid_t uid);

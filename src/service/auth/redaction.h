/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who reads properties. Everybody may, but what tells about somebody's program is for its owner,
 * root and whoever polkit allows manage. A property is put into a reply at once, so polkit is asked
 * before: by a filter that keeps the message back, when others' objects are read and the reply
 * would hold such things.
 */

#include "service/daemon/service.h"

/* To be called before peers_new(). */
int redaction_init(Service *s);

/* Whether polkit allows the sender of m, which is being answered, manage. */
bool redaction_manages(const Service *s, const sd_bus_message *m);

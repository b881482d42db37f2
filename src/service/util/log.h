/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The journal, or standard error where there is none.
 */

#include <syslog.h>

#include "core/message-id.h"
#include "core/util.h"

void log_plain(int priority, const char *format, ...) _printf_(2, 3);

/* A message with an id and fields: a NULL-terminated list of alternating names and values. A value
 * may be text of a client: fields are length-counted. */
void log_event(int priority, const char *message_id, const char *message,
               const char *const fields[]);

/* Messages below this priority (larger number) are dropped; LOG_INFO at start. */
extern int log_max_priority;

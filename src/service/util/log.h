/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The journal, or standard error where there is none.
 */

#include <syslog.h>

#include "core/util.h"

/* Message ids for administrators to search for; the catalog explains them. */
#define LOG_ID_HOLD_GRANTED    "8e1f7ad2c0b94a5b8d6a3f2e4c7b9d10"
#define LOG_ID_HOLD_ENDED      "3b0c5e9f6d784c1e9a2f7d8b1c4e6a32"
#define LOG_ID_HOLD_OBSTRUCTED "f4a6d1c83e5b4720b1c9e8d7a6f5b453"
#define LOG_ID_DENIED          "5d2e9b7c1a3f4e86b0d4c6f8a1e3b574"
#define LOG_ID_DEGRADED        "c7b9e3f15a8d4260974ed2b8c6a1f095"

void log_plain(int priority, const char *format, ...) _printf_(2, 3);

/* A message with an id and fields: a NULL-terminated list of alternating names and values. A value
 * may be text of a client: fields are length-counted. */
void log_event(int priority, const char *message_id, const char *message,
               const char *const fields[]);

/* Messages below this priority (larger number) are dropped; LOG_INFO at start. */
extern int log_max_priority;

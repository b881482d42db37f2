/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Numbers as text for people. The caller frees what is returned. NULL: no memory.
 */

#include <sys/types.h>

#include "core/util.h"

/* Formats a text as asprintf(3) does. NULL: no memory. */
char *words_format(const char *format, ...) _printf_(1, 2);

/* "alice", or the number of a user without a name. */
char *words_user(uid_t uid);

/* With the locale's thousands separators, or commas. */
char *words_count(uint64_t n);

/* Three digits and a prefix: "0", "999", "1.23k", "12.3M". */
char *words_rate(double per_second);

/* For a label of Prometheus, without the quotes around it: escapes quotes, backslashes and
 * newlines. */
char *words_label(const char *text);

/* A string of JSON, with its quotes. */
char *words_json(const char *text);

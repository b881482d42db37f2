/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the commands tell their user: one line each, "COMMAND: TEXT", on stderr. After a daemon has
 * let go of its terminal, in the system's log.
 *
 * Other people's words are in these lines (reasons, names of programs), so control characters never
 * get through to the terminal. Texts longer than REFUSAL_TEXT_MAX are cut.
 */

#include "core/util.h"

typedef enum SayTo {
        SAY_TO_STDERR,
        SAY_TO_LOG,
} SayTo;

void say_as(const char *command); /* "perfalloc" until then; has to stay */
void say_to(SayTo where);
void say_quietly(bool quiet); /* no more notes */

/* What went wrong. */
void say_error(const char *format, ...) _printf_(1, 2);

/* What is going on. */
void say_note(const char *format, ...) _printf_(1, 2);

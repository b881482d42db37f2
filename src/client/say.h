/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Messages of the commands to their user: one line each, "COMMAND: TEXT", on stderr, or, after a
 * daemon has detached, in the system's log.
 *
 * Lines contain other users' text (reasons, names of programs), so control characters never reach
 * the terminal. Texts longer than REFUSAL_TEXT_MAX are cut.
 */

#include "core/util.h"

typedef enum SayTo {
        SAY_TO_STDERR,
        SAY_TO_LOG,
} SayTo;

void say_as(const char *command); /* "perfalloc" until then; has to stay */
void say_to(SayTo where);
void say_quietly(bool quiet); /* no more notes */

/* Whether lines can be replaced later: standard error is a terminal, and this process has it. One
 * in the background would overwrite what others print. */
bool say_can_replace(void);

/* Lines that replace those which were said so last; the next message removes them. Longer lines
 * than the terminal is wide are cut. False: they could not be replaced, and nothing is said. */
bool say_in_place(const char *lines);

/* Removes them. */
void say_in_place_end(void);

/* An error. */
void say_error(const char *format, ...) _printf_(1, 2);

/* Progress, unless say_quietly() was called. */
void say_note(const char *format, ...) _printf_(1, 2);

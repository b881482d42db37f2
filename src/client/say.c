/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

#include "core/refusal.h"

static SayTo destination = SAY_TO_STDERR;
static const char *program = "perfalloc";
static bool quiet = false;

void say_as(const char *command) {
        program = command;
}

void say_to(SayTo where) {
        if (where == SAY_TO_LOG)
                openlog(program, LOG_PID, LOG_USER);
        destination = where;
}

void say_quietly(bool on) {
        quiet = on;
}

_printf_(2, 0) static void say(int priority, const char *format, va_list ap) {
        char text[REFUSAL_TEXT_MAX];

        (void) vsnprintf(text, sizeof(text), format, ap);
        for (char *p = text; *p; p++)
                if ((unsigned char) *p < 0x20 || *p == 0x7f)
                        *p = '?';
        if (destination == SAY_TO_LOG)
                syslog(priority, "%s", text);
        else
                (void) fprintf(stderr, "%s: %s\n", program, text);
}

void say_error(const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        say(LOG_ERR, format, ap);
        va_end(ap);
}

void say_note(const char *format, ...) {
        va_list ap;

        if (quiet)
                return;
        va_start(ap, format);
        say(LOG_INFO, format, ap);
        va_end(ap);
}

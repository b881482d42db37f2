/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <syslog.h>
#include <unistd.h>

#include "core/refusal.h"

static SayTo destination = SAY_TO_STDERR;
static const char *program = "perfalloc";
static bool quiet = false;
static unsigned n_in_place; /* lines that are on the terminal, to be replaced */

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

/* Control characters never reach the terminal. */
static void clean(char *text) {
        for (char *p = text; *p; p++)
                if ((unsigned char) *p < 0x20 || *p == 0x7f)
                        *p = '?';
}

void say_in_place_end(void) {
        if (n_in_place > 0)
                (void) fprintf(stderr, "\033[%uA\033[J", n_in_place);
        n_in_place = 0;
}

/* Cut to the width, in characters: those of UTF-8 that continue another one take no room. */
static void print_cut(const char *line, size_t length, size_t width) {
        size_t n = 0, used = 0;

        for (; n < length; n++) {
                used += ((unsigned char) line[n] & 0xc0) != 0x80;
                if (used > width)
                        break;
        }
        (void) fprintf(stderr, "%.*s\n", (int) n, line);
}

bool say_can_replace(void) {
        return destination == SAY_TO_STDERR && isatty(STDERR_FILENO) &&
               tcgetpgrp(STDERR_FILENO) == getpgrp();
}

bool say_in_place(const char *lines) {
        char text[4 * REFUSAL_TEXT_MAX];
        struct winsize size = {};
        char *rest = text;

        if (!say_can_replace())
                return false;
        if (quiet)
                return true;
        if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
                size.ws_col = 80;
        (void) snprintf(text, sizeof(text), "%s: %s", program, lines);
        say_in_place_end();
        for (char *line; (line = strsep(&rest, "\n"));) {
                clean(line);
                print_cut(line, strlen(line), size.ws_col - 1u);
                n_in_place++;
        }
        return true;
}

_printf_(2, 0) static void say(int priority, const char *format, va_list ap) {
        char text[REFUSAL_TEXT_MAX];

        (void) vsnprintf(text, sizeof(text), format, ap);
        clean(text);
        say_in_place_end();
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "words.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "core/timespan.h"

static const struct {
        const char *name;
        uint64_t usec;
} units[] = {
        { "d", 86400 * USEC_PER_SEC },
        { "h", 3600 * USEC_PER_SEC },
        { "min", 60 * USEC_PER_SEC },
        { "s", USEC_PER_SEC },
};

/* Two units; the second one is left out if it is 0. */
static int span_long(uint64_t usec, char **ret) {
        size_t i = 0;
        uint64_t rest;

        while (usec < units[i].usec)
                i++;
        rest = usec % units[i].usec / units[i + 1].usec;
        if (rest == 0)
                return asprintf(ret, "%" PRIu64 "%s", usec / units[i].usec, units[i].name);
        return asprintf(ret, "%" PRIu64 "%s %" PRIu64 "%s", usec / units[i].usec, units[i].name,
                        rest, units[i + 1].name);
}

char *words_span(uint64_t usec) {
        char *text;
        int r;

        if (usec == TIMESPAN_INFINITY)
                return strdup("infinity");
        if (usec >= 60 * USEC_PER_SEC)
                r = span_long(usec, &text);
        else if (usec >= 10 * USEC_PER_SEC)
                r = asprintf(&text, "%" PRIu64 "s", usec / USEC_PER_SEC);
        else if (usec >= USEC_PER_SEC && usec % USEC_PER_SEC < USEC_PER_SEC / 10)
                r = asprintf(&text, "%" PRIu64 "s", usec / USEC_PER_SEC);
        else if (usec >= USEC_PER_SEC)
                r = asprintf(&text, "%" PRIu64 ".%" PRIu64 "s", usec / USEC_PER_SEC,
                             usec % USEC_PER_SEC / (USEC_PER_SEC / 10));
        else if (usec >= USEC_PER_MSEC)
                r = asprintf(&text, "%" PRIu64 "ms", usec / USEC_PER_MSEC);
        else
                r = asprintf(&text, "%" PRIu64 "us", usec);
        return r < 0 ? NULL : text;
}

char *words_user(uid_t uid) {
        const struct passwd *user = getpwuid(uid);
        char *text;

        if (user)
                return strdup(user->pw_name);
        return asprintf(&text, "%u", uid) < 0 ? NULL : text;
}

char *words_count(uint64_t n) {
        char *text;

        return asprintf(&text, "%'" PRIu64, n) < 0 ? NULL : text;
}

char *words_rate(double per_second) {
        static const char prefixes[] = " kMGTPE";
        size_t i = 0;
        char *text;
        int r;

        while (per_second >= 999.5 && i + 2 < sizeof(prefixes)) {
                per_second /= 1000;
                i++;
        }
        if (i == 0)
                r = asprintf(&text, "%.0f", per_second);
        else
                r = asprintf(&text, "%.*f%c",
                             per_second < 9.995   ? 2
                             : per_second < 99.95 ? 1
                                                  : 0,
                             per_second, prefixes[i]);
        return r < 0 ? NULL : text;
}

static void escape_label(unsigned char c, FILE *f) {
        if (c == '\n')
                fputs("\\n", f);
        else
                fprintf(f, c == '"' || c == '\\' ? "\\%c" : "%c", c);
}

static void escape_json(unsigned char c, FILE *f) {
        if (c < 0x20 || c == 0x7f)
                fprintf(f, "\\u%04x", c);
        else
                escape_label(c, f);
}

static char *escaped(const char *text, void (*escape)(unsigned char c, FILE *f),
                     const char *quote) {
        _cleanup_free_ char *copy = NULL;
        size_t size;
        FILE *f = open_memstream(&copy, &size);

        if (!f)
                return NULL;
        fputs(quote, f);
        for (const char *p = text; *p; p++)
                escape((unsigned char) *p, f);
        fputs(quote, f);
        return fclose(f) == 0 ? TAKE_PTR(copy) : NULL;
}

char *words_label(const char *text) {
        return escaped(text, escape_label, "");
}

char *words_json(const char *text) {
        return escaped(text, escape_json, "\"");
}

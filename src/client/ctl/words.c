/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "words.h"

#include <inttypes.h>
#include <locale.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/utf8.h"

char *words_format(const char *format, ...) {
        va_list arguments;
        char *text;
        int r;

        va_start(arguments, format);
        r = vasprintf(&text, format, arguments);
        va_end(arguments);
        return r < 0 ? NULL : text;
}

char *words_user(uid_t uid) {
        const struct passwd *user = getpwuid(uid);

        return user ? strdup(user->pw_name) : words_format("%u", uid);
}

/* The locale's separator is empty in the C locale and those like it. */
char *words_count(uint64_t n) {
        const char *separator = localeconv()->thousands_sep;
        char digits[24], text[3 * sizeof(digits)] = "";
        size_t length;

        if (!*separator)
                separator = ",";
        length = (size_t) snprintf(digits, sizeof(digits), "%" PRIu64, n);
        for (size_t i = 0, at = 0; i < length && at < sizeof(text); i++)
                at += (size_t) snprintf(text + at, sizeof(text) - at, "%s%c",
                                        i > 0 && (length - i) % 3 == 0 ? separator : "", digits[i]);
        return strdup(text);
}

char *words_rate(double per_second) {
        static const char prefixes[] = " kMGTPE";
        int digits = 0;
        size_t i = 0;

        while (per_second >= 999.5 && i + 2 < sizeof(prefixes)) {
                per_second /= 1000;
                i++;
        }
        if (i == 0 && per_second == (double) (uint64_t) per_second)
                return words_format("%.0f", per_second);
        if (per_second < 99.95)
                digits = per_second < 9.995 ? 2 : 1;
        return words_format(i > 0 ? "%.*f%c" : "%.*f", digits, per_second, prefixes[i]);
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
        for (const char *p = text; *p;) {
                size_t length = utf8_text_length(p);

                if (length == 0 && (unsigned char) *p >= 0x80) { /* not UTF-8 */
                        fputs("\ufffd", f);
                        p++;
                        continue;
                }
                for (const char *end = p + MAX(length, 1u); p < end; p++)
                        escape((unsigned char) *p, f);
        }
        fputs(quote, f);
        return fclose(f) == 0 ? TAKE_PTR(copy) : NULL;
}

char *words_label(const char *text) {
        return escaped(text, escape_label, "");
}

char *words_json(const char *text) {
        return escaped(text, escape_json, "\"");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "timespan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define USEC_PER_MINUTE (60 * USEC_PER_SEC)
#define USEC_PER_HOUR   (60 * USEC_PER_MINUTE)
#define USEC_PER_DAY    (24 * USEC_PER_HOUR)
#define USEC_PER_YEAR   (31557600 * USEC_PER_SEC) /* 365.25 days, as systemd has it */

static const struct {
        const char *name;
        uint64_t usec;
} units[] = {
        { "usec", 1 },
        { "us", 1 },
        { "\xc2\xb5s", 1 }, /* MICRO SIGN */
        { "\xce\xbcs", 1 }, /* GREEK SMALL LETTER MU */
        { "msec", USEC_PER_MSEC },
        { "ms", USEC_PER_MSEC },
        { "seconds", USEC_PER_SEC },
        { "second", USEC_PER_SEC },
        { "sec", USEC_PER_SEC },
        { "s", USEC_PER_SEC },
        { "", USEC_PER_SEC },
        { "minutes", USEC_PER_MINUTE },
        { "minute", USEC_PER_MINUTE },
        { "min", USEC_PER_MINUTE },
        { "m", USEC_PER_MINUTE },
        { "hours", USEC_PER_HOUR },
        { "hour", USEC_PER_HOUR },
        { "hr", USEC_PER_HOUR },
        { "h", USEC_PER_HOUR },
        { "days", USEC_PER_DAY },
        { "day", USEC_PER_DAY },
        { "d", USEC_PER_DAY },
        { "weeks", 7 * USEC_PER_DAY },
        { "week", 7 * USEC_PER_DAY },
        { "w", 7 * USEC_PER_DAY },
        { "months", USEC_PER_YEAR / 12 },
        { "month", USEC_PER_YEAR / 12 },
        { "M", USEC_PER_YEAR / 12 },
        { "years", USEC_PER_YEAR },
        { "year", USEC_PER_YEAR },
        { "y", USEC_PER_YEAR },
};

#define BLANKS  " \t\n"
#define DIGITS  "0123456789"
#define NO_UNIT 0u

static uint64_t unit_find(const char *name, size_t length) {
        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                if (strlen(units[i].name) == length && strncmp(units[i].name, name, length) == 0)
                        return units[i].usec;
        return NO_UNIT;
}

static int refuse_text(const char *text, const char *what, Refusal *why) {
        return refuse(why, REFUSAL_INVALID_ARGS,
                      "'%.64s' is no length of time: %s (write 5s, 2min 30s, 500ms or infinity)",
                      text, what);
}

/* A decimal number times unit; digits beyond a microsecond are dropped. */
static int number_scale(const char *whole, size_t n_whole, const char *fraction, size_t n_fraction,
                        uint64_t unit, uint64_t *ret) {
        uint64_t usec = 0, part = unit;

        for (size_t i = 0; i < n_whole; i++)
                if (__builtin_mul_overflow(usec, 10, &usec) ||
                    __builtin_add_overflow(usec, (uint64_t) (whole[i] - '0'), &usec))
                        return -ERANGE;
        if (__builtin_mul_overflow(usec, unit, &usec))
                return -ERANGE;
        for (size_t i = 0; i < n_fraction && part > 0; i++, part /= 10)
                if (__builtin_add_overflow(usec, part * (uint64_t) (fraction[i] - '0') / 10, &usec))
                        return -ERANGE;
        *ret = usec;
        return 0;
}

/* One number and its unit, from *p on; without a unit only where it is alone. */
static int term_parse(const char *text, const char **p, bool first, uint64_t *ret_usec,
                      Refusal *why) {
        const char *whole = *p, *fraction = whole + strspn(whole, DIGITS), *name;
        size_t n_whole = (size_t) (fraction - whole), n_fraction = 0, n_name;
        uint64_t unit;

        if (*fraction == '.')
                n_fraction = strspn(++fraction, DIGITS);
        if (n_whole + n_fraction == 0)
                return refuse_text(text, "a number is missing", why);
        name = fraction + n_fraction;
        name += strspn(name, BLANKS);
        n_name = strcspn(name, BLANKS DIGITS ".+-");
        if (n_name == 0 && (*name || !first))
                return refuse_text(text, "a unit is missing", why);
        unit = unit_find(name, n_name);
        if (unit == NO_UNIT)
                return refuse_text(text, "there is no such unit", why);
        if (number_scale(whole, n_whole, fraction, n_fraction, unit, ret_usec) < 0)
                return refuse_text(text, "it is too long", why);
        *p = name + n_name;
        return 0;
}

int timespan_parse(const char *text, uint64_t *ret_usec, Refusal *why) {
        const char *p = text + strspn(text, BLANKS);
        uint64_t sum = 0, usec;
        bool first = true;
        int r;

        if (strncmp(p, "infinity", 8) == 0 && p[8 + strspn(p + 8, BLANKS)] == '\0') {
                *ret_usec = TIMESPAN_INFINITY;
                return 0;
        }
        do {
                r = term_parse(text, &p, first, &usec, why);
                if (r != 0)
                        return r;
                /* the largest value means infinity */
                if (__builtin_add_overflow(sum, usec, &sum) || sum == TIMESPAN_INFINITY)
                        return refuse_text(text, "it is too long", why);
                p += strspn(p, BLANKS);
                first = false;
        } while (*p);
        *ret_usec = sum;
        return 0;
}

void timespan_format(uint64_t usec, char text[static TIMESPAN_TEXT_MAX]) {
        if (usec < USEC_PER_MSEC)
                (void) snprintf(text, TIMESPAN_TEXT_MAX, "%" PRIu64 " \xc2\xb5s", usec);
        else if (usec < USEC_PER_SEC)
                (void) snprintf(text, TIMESPAN_TEXT_MAX, "%" PRIu64 ".%" PRIu64 " ms",
                                usec / USEC_PER_MSEC, usec % USEC_PER_MSEC / 100);
        else
                (void) snprintf(text, TIMESPAN_TEXT_MAX, "%" PRIu64 ".%02" PRIu64 " s",
                                usec / USEC_PER_SEC, usec % USEC_PER_SEC / 10000);
}

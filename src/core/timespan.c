/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "timespan.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* As systemd.time(7) has them: 365.25 days, and a twelfth of that. */
#define YEAR_USEC  (31557600 * USEC_PER_SEC)
#define MONTH_USEC (YEAR_USEC / 12)

static const struct {
        const char *name;
        uint64_t usec;
} units[] = {
        { "us", 1 },
        { "usec", 1 },
        { "\302\265s", 1 }, /* micro sign */
        { "\316\274s", 1 }, /* Greek mu */
        { "ms", USEC_PER_MSEC },
        { "msec", USEC_PER_MSEC },
        { "", USEC_PER_SEC },
        { "s", USEC_PER_SEC },
        { "sec", USEC_PER_SEC },
        { "second", USEC_PER_SEC },
        { "seconds", USEC_PER_SEC },
        { "m", 60 * USEC_PER_SEC },
        { "min", 60 * USEC_PER_SEC },
        { "minute", 60 * USEC_PER_SEC },
        { "minutes", 60 * USEC_PER_SEC },
        { "h", 3600 * USEC_PER_SEC },
        { "hr", 3600 * USEC_PER_SEC },
        { "hour", 3600 * USEC_PER_SEC },
        { "hours", 3600 * USEC_PER_SEC },
        { "d", 86400 * USEC_PER_SEC },
        { "day", 86400 * USEC_PER_SEC },
        { "days", 86400 * USEC_PER_SEC },
        { "w", 7 * 86400 * USEC_PER_SEC },
        { "week", 7 * 86400 * USEC_PER_SEC },
        { "weeks", 7 * 86400 * USEC_PER_SEC },
        { "M", MONTH_USEC },
        { "month", MONTH_USEC },
        { "months", MONTH_USEC },
        { "y", YEAR_USEC },
        { "year", YEAR_USEC },
        { "years", YEAR_USEC },
};

/* A decimal number; its fraction is one of the unit that follows. */
typedef struct Number {
        uint64_t whole;
        uint64_t fraction, fraction_of;
} Number;

static int number_read(const char **p, Number *ret) {
        const char *start = *p;

        *ret = (Number){ .fraction_of = 1 };
        for (; isdigit((unsigned char) **p); (*p)++)
                if (__builtin_mul_overflow(ret->whole, 10, &ret->whole) ||
                    __builtin_add_overflow(ret->whole, (uint64_t) (**p - '0'), &ret->whole))
                        return -ERANGE;
        if (**p == '.')
                for ((*p)++; isdigit((unsigned char) **p); (*p)++)
                        if (ret->fraction_of < 1000000) {
                                ret->fraction = ret->fraction * 10 + (uint64_t) (**p - '0');
                                ret->fraction_of *= 10;
                        }
        return *p == start || (*p)[-1] == '.' || **p == '.' ? -EINVAL : 0;
}

static int unit_read(const char **p, uint64_t *ret) {
        size_t n = 0;

        while (isalpha((unsigned char) (*p)[n]) || (unsigned char) (*p)[n] >= 0x80)
                n++;
        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                if (strlen(units[i].name) == n && strncmp(*p, units[i].name, n) == 0) {
                        *p += n;
                        *ret = units[i].usec;
                        return 0;
                }
        return -EINVAL;
}

static const char *skip_space(const char *p) {
        return p + strspn(p, " \t");
}

int timespan_parse(const char *text, uint64_t *ret_usec) {
        const char *p = skip_space(text);
        uint64_t sum = 0;

        if (strncmp(p, "infinity", 8) == 0 && !*skip_space(p + 8)) {
                *ret_usec = TIMESPAN_INFINITY;
                return 0;
        }
        do {
                Number number;
                uint64_t unit, usec;
                int r = number_read(&p, &number);

                if (r < 0)
                        return r;
                p = skip_space(p);
                r = unit_read(&p, &unit);
                if (r < 0)
                        return r;
                if (__builtin_mul_overflow(number.whole, unit, &usec) ||
                    __builtin_add_overflow(usec,
                                           unit / number.fraction_of * number.fraction +
                                                   unit % number.fraction_of * number.fraction /
                                                           number.fraction_of,
                                           &usec) ||
                    __builtin_add_overflow(sum, usec, &sum) || sum == TIMESPAN_INFINITY)
                        return -ERANGE;
                p = skip_space(p);
        } while (*p);
        *ret_usec = sum;
        return 0;
}

/* ---- as text ---- */

static const struct {
        const char *name;
        uint64_t usec;
} long_units[] = {
        { "d", 86400 * USEC_PER_SEC },
        { "h", 3600 * USEC_PER_SEC },
        { "min", 60 * USEC_PER_SEC },
        { "s", USEC_PER_SEC },
};

/* Two units; the second one is left out if it is 0. */
static int format_long(char **ret, uint64_t usec) {
        size_t i = 0;
        uint64_t rest;

        while (usec < long_units[i].usec)
                i++;
        rest = usec % long_units[i].usec / long_units[i + 1].usec;
        if (rest == 0)
                return asprintf(ret, "%" PRIu64 "%s", usec / long_units[i].usec,
                                long_units[i].name);
        return asprintf(ret, "%" PRIu64 "%s %" PRIu64 "%s", usec / long_units[i].usec,
                        long_units[i].name, rest, long_units[i + 1].name);
}

char *timespan_format(uint64_t usec) {
        uint64_t tenths = usec % USEC_PER_SEC / (USEC_PER_SEC / 10);
        char *text;
        int r;

        if (usec == TIMESPAN_INFINITY)
                return strdup("infinity");
        if (usec >= 60 * USEC_PER_SEC)
                r = format_long(&text, usec);
        else if (usec >= 10 * USEC_PER_SEC || (usec >= USEC_PER_SEC && tenths == 0))
                r = asprintf(&text, "%" PRIu64 "s", usec / USEC_PER_SEC);
        else if (usec >= USEC_PER_SEC)
                r = asprintf(&text, "%" PRIu64 ".%" PRIu64 "s", usec / USEC_PER_SEC, tenths);
        else if (usec >= USEC_PER_MSEC)
                r = asprintf(&text, "%" PRIu64 "ms", usec / USEC_PER_MSEC);
        else
                r = asprintf(&text, "%" PRIu64 "us", usec);
        return r < 0 ? NULL : text;
}

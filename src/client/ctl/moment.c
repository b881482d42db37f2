/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "moment.h"

#include <string.h>
#include <time.h>

#include "core/timespan.h"

static uint64_t usec_of(struct tm *tm) {
        time_t seconds;

        tm->tm_isdst = -1;
        seconds = mktime(tm);
        return seconds < 0 ? 0 : (uint64_t) seconds * USEC_PER_SEC;
}

/* The midnight before, so many days ago. */
static uint64_t midnight(const struct tm *now, int days) {
        struct tm tm = { .tm_year = now->tm_year, .tm_mon = now->tm_mon, .tm_mday = now->tm_mday };

        tm.tm_mday -= days;
        return usec_of(&tm);
}

/* What a format does not name is that of today's midnight. */
static bool parse_date(const char *text, const struct tm *now, uint64_t *ret) {
        static const char *const formats[] = {
                "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%H:%M", "%H:%M:%S",
        };

        for (size_t i = 0; i < ELEMENTSOF(formats); i++) {
                struct tm tm = { .tm_year = now->tm_year,
                                 .tm_mon = now->tm_mon,
                                 .tm_mday = now->tm_mday };
                const char *end = strptime(text, formats[i], &tm);

                if (end && !*end) {
                        *ret = usec_of(&tm);
                        return true;
                }
        }
        return false;
}

int moment_parse(const char *text, uint64_t now_usec, uint64_t *ret) {
        time_t seconds = (time_t) (now_usec / USEC_PER_SEC);
        uint64_t span;
        struct tm now;

        if (!localtime_r(&seconds, &now))
                return -EINVAL;
        if (strcmp(text, "now") == 0)
                *ret = now_usec;
        else if (strcmp(text, "today") == 0)
                *ret = midnight(&now, 0);
        else if (strcmp(text, "yesterday") == 0)
                *ret = midnight(&now, 1);
        else if (parse_date(text, &now, ret))
                return 0;
        else if (timespan_parse(text, &span) < 0 || span > now_usec)
                return -EINVAL;
        else
                *ret = now_usec - span;
        return 0;
}

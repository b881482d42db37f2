/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "number.h"

#include <ctype.h>
#include <string.h>

int number_parse(const char *text, uint64_t *ret) {
        bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
        const char *digits = hex ? text + 2 : text;
        unsigned long long value;
        char *end;

        /* strtoull() would accept blanks and signs. */
        if (!isascii(*digits) || !(hex ? isxdigit(*digits) : isdigit(*digits)))
                return -EINVAL;
        errno = 0;
        value = strtoull(digits, &end, hex ? 16 : 10);
        if (*end)
                return -EINVAL;
        if (errno == ERANGE || value > UINT64_MAX)
                return -ERANGE;
        *ret = value;
        return 0;
}

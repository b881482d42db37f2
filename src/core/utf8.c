/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "utf8.h"

static bool is_continuation(unsigned char c) {
        return (c & 0xc0) == 0x80;
}

/* Whether what the first two bytes begin is neither overlong, nor a surrogate, nor beyond U+10FFFF
 * (RFC 3629). */
static bool is_within(unsigned char first, unsigned char second) {
        switch (first) {
        case 0xe0:
                return second >= 0xa0;
        case 0xed:
                return second < 0xa0;
        case 0xf0:
                return second >= 0x90;
        case 0xf4:
                return second < 0x90;
        default:
                return true;
        }
}

size_t utf8_text_length(const char *p) {
        const unsigned char *c = (const unsigned char *) p;
        size_t n = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : c[0] >= 0xc2 ? 2 : 1;

        if (n == 1)
                return c[0] >= 0x20 && c[0] < 0x7f;
        if (c[0] > 0xf4 || !is_within(c[0], c[1]))
                return 0;
        for (size_t i = 1; i < n; i++)
                if (!is_continuation(c[i]))
                        return 0;
        return n;
}

bool utf8_is_text(const char *text) {
        size_t n;

        while ((n = utf8_text_length(text)) > 0)
                text += n;
        return !*text;
}

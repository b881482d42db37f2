/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sysfs-format.h"

#include <string.h>

#include "core/number.h"

#define WORD_BITS 64u

int sysfs_format_of_word(const char *name, SysfsFormat *ret) {
        static const AttrPlace words[] = { ATTR_CONFIG, ATTR_CONFIG1, ATTR_CONFIG2, ATTR_CONFIG3,
                                           ATTR_CONFIG4 };

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (strcmp(attr_numbers[words[i]].name, name) == 0) {
                        *ret = (SysfsFormat){ .word = words[i], .mask = UINT64_MAX };
                        return 0;
                }
        return -EBADMSG;
}

/* The mask of "0-7" or "21"; 0: it is something else. */
static uint64_t parse_bits(char *range) {
        char *dash = strchr(range, '-');
        uint64_t first, last;

        if (dash)
                *dash++ = '\0';
        if (number_parse(range, &first) < 0 || number_parse(dash ? dash : range, &last) < 0 ||
            last >= WORD_BITS || first > last)
                return 0;
        return UINT64_MAX >> (WORD_BITS - 1 - (last - first)) << first;
}

int sysfs_format_parse(const char *text, SysfsFormat *ret) {
        SysfsFormat f;
        char copy[256], *rest = copy;
        int r;

        if (strlen(text) >= sizeof(copy))
                return -EBADMSG;
        memcpy(copy, text, strlen(text) + 1);
        r = sysfs_format_of_word(strsep(&rest, ":"), &f);
        if (r < 0)
                return r;
        if (!rest)
                return -EBADMSG;
        f.mask = 0;
        while (rest) {
                uint64_t bits = parse_bits(strsep(&rest, ","));

                if (bits == 0 || (f.mask & bits))
                        return -EBADMSG;
                f.mask |= bits;
        }
        *ret = f;
        return 0;
}

unsigned sysfs_format_width(const SysfsFormat *f) {
        return (unsigned) __builtin_popcountll(f->mask);
}

int sysfs_format_apply(const SysfsFormat *f, uint64_t value, Attr *attr) {
        unsigned width = sysfs_format_width(f);
        uint64_t word;

        if (width < WORD_BITS && value >> width)
                return -ERANGE;
        word = attr_number(attr, f->word);
        for (uint64_t left = f->mask; left; left &= left - 1, value >>= 1) {
                uint64_t bit = left & -left;

                word = value & 1 ? word | bit : word & ~bit;
        }
        attr_set_number(attr, f->word, word);
        attr->known.size =
                MAX(attr->known.size, attr_numbers[f->word].offset + attr_numbers[f->word].size);
        return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "address.h"

#include <sys/auxv.h>

uint64_t address_user_max(void) {
        return sizeof(void *) == 8 ? INT64_MAX : getauxval(AT_EXECFN);
}

bool address_is_user(uint64_t first, uint64_t length, uint64_t max) {
        uint64_t last = first + length - 1;

        return length > 0 && first <= last && last <= max;
}

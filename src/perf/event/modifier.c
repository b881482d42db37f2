/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "modifier.h"

#include <string.h>

#define LETTERS     "ukhGHIp"
#define PRECISE_MAX 3 /* precise_ip has two bits */

static unsigned count(const char *letters, char letter) {
        unsigned n = 0;

        for (; *letters; letters++)
                n += *letters == letter;
        return n;
}

bool modifiers_apply(const char *letters, struct perf_event_attr *attr) {
        unsigned precise = count(letters, 'p');

        /* letters, single colons between them */
        if (letters[strspn(letters, LETTERS ":")] || *letters == ':' || strstr(letters, "::") ||
            (*letters && letters[strlen(letters) - 1] == ':') || precise > PRECISE_MAX)
                return false;

        if (strpbrk(letters, "ukh")) {
                attr->exclude_user = !strchr(letters, 'u');
                attr->exclude_kernel = !strchr(letters, 'k');
                attr->exclude_hv = !strchr(letters, 'h');
        }
        if (strpbrk(letters, "GH")) {
                attr->exclude_guest = !strchr(letters, 'G');
                attr->exclude_host = !strchr(letters, 'H');
        } else if (precise > 0)
                attr->exclude_guest =
                        1; /* x86 has no precise events in guests; perf does the same */
        if (strchr(letters, 'I'))
                attr->exclude_idle = 1;
        attr->precise_ip = precise;
        return true;
}

int modifiers_parse(const char *event, const char *letters, struct perf_event_attr *attr,
                    Refusal *why) {
        if (modifiers_apply(letters, attr))
                return 0;
        return refuse(why, REFUSAL_INVALID_EVENT,
                      "event '%s': invalid modifier '%.64s'; modifiers are u, k, h (user, kernel, "
                      "hypervisor), G, H (guests, host), I (not idle) and p to ppp (precise)",
                      event, letters);
}

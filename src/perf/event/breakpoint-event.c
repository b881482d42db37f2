/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "breakpoint-event.h"

#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <string.h>

#include "core/address.h"
#include "core/number.h"
#include "perf/event/modifier.h"

/* Parses r, w and x; false: it is something else. */
static bool parse_access(const char *text, uint32_t *ret) {
        static const struct {
                char letter;
                uint32_t bit;
        } letters[] = {
                { 'r', HW_BREAKPOINT_R },
                { 'w', HW_BREAKPOINT_W },
                { 'x', HW_BREAKPOINT_X },
        };
        uint32_t access = 0;

        for (const char *p = text; *p; p++) {
                uint32_t bit = 0;

                for (size_t i = 0; i < ELEMENTSOF(letters); i++)
                        if (letters[i].letter == *p)
                                bit = letters[i].bit;
                if (bit == 0 || (access & bit))
                        return false;
                access |= bit;
        }
        if (access == 0)
                return false;
        *ret = access;
        return true;
}

/* Parses "ADDR[/LEN]". */
static int parse_place(const char *event, char *place, struct perf_event_attr *attr, Refusal *why) {
        char *length = strchr(place, '/');
        uint64_t address, n;
        int r;

        if (length)
                *length++ = '\0';
        r = number_parse(place, &address);
        if (r < 0)
                return refuse(why, REFUSAL_INVALID_EVENT,
                              "event '%s': '%.64s' is not an address%s: write mem:0x1000/4:rw",
                              event, place, r == -ERANGE ? " of 64 bits" : "");
        n = attr->bp_type & HW_BREAKPOINT_X ? sizeof(long) : HW_BREAKPOINT_LEN_4;
        if (length &&
            (number_parse(length, &n) < 0 || n < HW_BREAKPOINT_LEN_1 || n > HW_BREAKPOINT_LEN_8))
                return refuse(why, REFUSAL_INVALID_EVENT,
                              "event '%s': a breakpoint cannot be '%.64s' bytes long, but 1 to 8",
                              event, length);
        if (address + n - 1 < address)
                return refuse(why, REFUSAL_BAD_ADDRESS,
                              "event '%s': its %u bytes exceed the address space", event,
                              (unsigned) n);
        attr->bp_addr = address;
        attr->bp_len = n;
        return 0;
}

/* Parses "[ACCESS][:MODIFIERS]"; text may be NULL. */
static bool parse_rest(char *text, struct perf_event_attr *attr) {
        char *colon = text ? strchr(text, ':') : NULL;

        attr->bp_type = HW_BREAKPOINT_RW;
        if (!text)
                return true;
        if (colon)
                *colon = '\0';
        if (parse_access(text, &attr->bp_type)) {
                if (!colon)
                        return true;
                text = colon + 1;
        } else if (colon)
                *colon = ':'; /* no access, but modifiers in parts: "mem:0x1000:u:k" */
        return *text && modifiers_apply(text, attr);
}

int breakpoint_event_parse(const char *string, struct perf_event_attr *attr, Refusal *why) {
        _cleanup_free_ char *copy = strdup(string + strlen(BREAKPOINT_EVENT_PREFIX));
        char *rest, *place;
        int r;

        if (!copy)
                return -ENOMEM;
        rest = copy;
        place = strsep(&rest, ":");
        attr->type = PERF_TYPE_BREAKPOINT;
        if (!parse_rest(rest, attr))
                return refuse(
                        why, REFUSAL_INVALID_EVENT,
                        "event '%s': the address is followed by an access (r, w, x or several) "
                        "and modifiers (u, k, h, G, H, I), as in mem:0x1000/4:rw:u",
                        string);
        r = parse_place(string, place, attr, why);
        if (r != 0)
                return r;
        if (attr->exclude_kernel &&
            !address_is_user(attr->bp_addr, attr->bp_len, address_user_max()))
                return refuse(why, REFUSAL_BAD_ADDRESS,
                              "event '%s': it reaches into the kernel's half, and only user space "
                              "would be counted: leave ':u' out, or add 'k'",
                              string);
        return 0;
}

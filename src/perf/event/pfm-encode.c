/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pfm-encode.h"

#include <string.h>

#define PRIVILEGES (PFM_PLM0 | PFM_PLM3 | PFM_PLMH) /* what an event without modifiers counts */

/* The library has a perf_event_attr of its own, which may be larger than the one here. */
typedef union RoomyAttr {
        struct perf_event_attr attr;
        char room[1024];
} RoomyAttr;

static bool is_zero(const char *bytes, size_t n) {
        while (n > 0 && bytes[n - 1] == 0)
                n--;
        return n == 0;
}

int pfm_encode(const Pfm *pfm, const char *string, struct perf_event_attr *ret, bool *ret_extras) {
        RoomyAttr all = {};
        pfm_perf_encode_arg_t arg = { .attr = &all.attr, .size = sizeof(arg), .cpu = -1 };
        struct perf_event_attr event = {};
        int r;

        r = pfm->get_os_event_encoding(string, PRIVILEGES, PFM_OS_PERF_EVENT_EXT, &arg);
        if (r != PFM_SUCCESS)
                return r;
        event.size = all.attr.size;
        event.type = all.attr.type;
        event.config = all.attr.config;
        event.config1 = all.attr.config1;
        event.config2 = all.attr.config2;
        event.exclude_user = all.attr.exclude_user;
        event.exclude_kernel = all.attr.exclude_kernel;
        event.exclude_hv = all.attr.exclude_hv;
        event.exclude_idle = all.attr.exclude_idle;
        event.exclude_host = all.attr.exclude_host;
        event.exclude_guest = all.attr.exclude_guest;
        event.precise_ip = all.attr.precise_ip;
        *ret_extras = memcmp(&event, &all.attr, PERF_ATTR_SIZE_VER7) != 0 ||
                      !is_zero(all.room + PERF_ATTR_SIZE_VER7, sizeof(all) - PERF_ATTR_SIZE_VER7) ||
                      arg.cpu != -1;
        *ret = event;
        return PFM_SUCCESS;
}

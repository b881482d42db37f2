/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attr.h"

#include <stdio.h>
#include <string.h>

#include "perf/pmu/perf-open.h"

/* A size that no attr ever had: the kernel must refuse it. */
static uint32_t attr_ask_kernel_size(void) {
        PerfOpen o = PERF_OPEN_NULL;

        attr_set_number(&o.attr, ATTR_TYPE, PERF_TYPE_SOFTWARE);
        attr_set_number(&o.attr, ATTR_SIZE, 1);
        o.pid = 0;
        perf_open_all(&o, 1);
        close_fd(o.fd);
        return o.size;
}

uint32_t attr_kernel_size(void) {
        static uint32_t size; /* does not change */

        if (size == 0)
                size = attr_ask_kernel_size();
        return size;
}

static int refuse_size(uint32_t kernel_size, const char *what, size_t size, const char *wrong,
                       Refusal *why) {
        char expected[64] = "";

        if (kernel_size > 0)
                (void) snprintf(expected, sizeof(expected), "; this kernel expects %u",
                                kernel_size);
        return refuse(why, REFUSAL_ATTR_SIZE, "attr: its %s %zu %s%s", what, size, wrong, expected);
}

static bool is_zero(const unsigned char *bytes, size_t from, size_t to) {
        for (size_t i = from; i < to; i++)
                if (bytes[i] != 0)
                        return false;
        return true;
}

/* The size that the client states, which must be no more than it sent. */
static int attr_read_size(const unsigned char *bytes, size_t n, uint32_t kernel_size, size_t *ret,
                          Refusal *why) {
        const char *wrong = NULL;
        uint32_t size = 0;

        if (n < ATTR_SIZE_MIN)
                return refuse_size(kernel_size, "length of", n, "is below the minimum of 64", why);
        if (n > ATTR_SIZE_MAX)
                return refuse_size(kernel_size, "length of", n,
                                   "is above the maximum of the kernel", why);
        memcpy(&size, bytes + offsetof(struct perf_event_attr, size), sizeof(size));
        if (size == 0)
                size = ATTR_SIZE_MIN;
        if (size < ATTR_SIZE_MIN)
                wrong = "is below the minimum of 64 (0 means 64)";
        else if (size > ATTR_SIZE_MAX)
                wrong = "is above the maximum of the kernel";
        else if (size > n)
                wrong = "is more than was sent";
        *ret = size;
        return wrong ? refuse_size(kernel_size, "field size,", size, wrong, why) : 0;
}

int attr_read(const void *bytes, size_t n, uint32_t kernel_size, Attr *ret, Refusal *why) {
        size_t size = 0,
               known = kernel_size > 0 ? MIN(kernel_size, ATTR_SIZE_KNOWN) : ATTR_SIZE_KNOWN;
        Attr a = {};
        int r;

        r = attr_read_size(bytes, n, kernel_size, &size, why);
        if (r != 0)
                return r;
        if (kernel_size > 0 && size > kernel_size && !is_zero(bytes, kernel_size, size))
                return refuse_size(kernel_size, "field size,", size,
                                   "covers fields that are set and that this kernel does not know",
                                   why);
        if (size > known && !is_zero(bytes, known, size))
                return refuse(why, REFUSAL_NOT_PERMITTED,
                              "attr: the fields from byte %zu on are unknown to this service, "
                              "which therefore refuses them; clear them",
                              known);
        memcpy(a.bytes, bytes, MIN(size, known));
        attr_set_number(&a, ATTR_SIZE, size);
        *ret = a;
        return 0;
}

AttrPmu attr_pmu(const Pmu *pmu) {
        static const AttrPmu classes[_PMU_KIND_MAX] = {
                [PMU_CORE] = ATTR_PMU_CORE,
                [PMU_SOFTWARE] = ATTR_PMU_SOFTWARE,
                [PMU_BREAKPOINT] = ATTR_PMU_BREAKPOINT,
                [PMU_TRACEPOINT] = ATTR_PMU_TRACEPOINT,
                [PMU_UNCORE] = ATTR_PMU_UNCORE,
                [PMU_OTHER] = ATTR_PMU_OTHER,
        };

        if (!pmu)
                return ATTR_PMU_OTHER;
        if (strcmp(pmu->name, "kprobe") == 0 || strcmp(pmu->name, "uprobe") == 0)
                return ATTR_PMU_PROBE;
        return classes[pmu->kind];
}

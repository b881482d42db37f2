/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-order.h"

#include <sys/ioctl.h>

#include "perf/pmu/perf-open.h"

uint64_t event_order(int fd) {
        uint64_t id;

        return ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0 ? 0 : id;
}

uint64_t event_order_now(void) {
        const struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof(attr),
                .config = PERF_COUNT_SW_DUMMY,
                .disabled = 1,
                .exclude_kernel = 1,
                .exclude_hv = 1,
        };
        _cleanup_close_ int fd = perf_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

        return fd < 0 ? UINT64_MAX : event_order(fd) ?: UINT64_MAX;
}

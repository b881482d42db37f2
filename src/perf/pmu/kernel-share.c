/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel-share.h"

#include <fcntl.h>

/* Any value but 0; without a detector there is no such file. */
static bool watchdog_runs(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        char value = '0';

        return fd >= 0 && read(fd, &value, 1) == 1 && value != '0';
}

Shape kernel_share(const Pmu *pmu, const char *path) {
        Shape cycles = { .fixed = pmu_fixed_bit(pmu, "cycles") };

        if (pmu->kind != PMU_CORE || !pmu->measured || !watchdog_runs(path))
                return SHAPE_NULL;
        cycles.general = cycles.fixed == 0;
        return cycles;
}

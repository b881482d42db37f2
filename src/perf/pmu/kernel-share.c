/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel-share.h"

#include <fcntl.h>

#include "perf/pmu/kernel.h"
#include "perf/pmu/look.h"
#include "perf/pmu/sysfs.h"

#define LOOKS_MAX 4

/* Any value but 0; without a detector there is no such file. */
static bool watchdog_runs(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        char value = '0';

        return fd >= 0 && read(fd, &value, 1) == 1 && value != '0';
}

Shape kernel_share(const Pmu *pmu, const char *path) {
        Shape cycles = { .fixed = pmu_fixed_bit(pmu, "cycles") };

        if (pmu->kind != PMU_CORE || !pmu->measured || pmu->buddies || !watchdog_runs(path))
                return SHAPE_NULL;
        cycles.general = cycles.fixed == 0;
        return cycles;
}

static bool is_all_free(const Pmu *pmu, unsigned cpu) {
        Look l = { .pmu = pmu, .cpu = cpu, .wanted = pmu_whole(pmu) };

        return look_at(&l) == 0 && l.result == LOOK_FREE;
}

/* False: not known. */
static bool watchdog_cpus(const char *path, CpuSet *ret) {
        _cleanup_free_ char *list = NULL;

        return sysfs_read(AT_FDCWD, path, &list) >= 0 && cpuset_parse(ret, list, NULL) == 0;
}

void kernel_share_look(Pmu *pmu, const char *path, const char *cpus_path) {
        _cleanup_(cpuset_done) CpuSet watched = CPUSET_NULL;
        int n = 0;

        if (shape_is_empty(kernel_share(pmu, path)) || !watchdog_cpus(cpus_path, &watched))
                return;
        CPU_FOREACH (cpu, &pmu->cpus)
                if (cpuset_has(&watched, (unsigned) cpu) && n++ < LOOKS_MAX && !pmu->buddies)
                        pmu->buddies = is_all_free(pmu, (unsigned) cpu);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cpu-generation.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int cpu_generations_new(size_t n, CpuGenerations *ret) {
        CpuGenerations g = { .n = n, .ids = calloc(MAX(n, 1u), sizeof(uint64_t)) };

        if (!g.ids)
                return -ENOMEM;
        *ret = g;
        return 0;
}

void cpu_generations_done(CpuGenerations *g) {
        free(g->ids);
        *g = CPU_GENERATIONS_NULL;
}

static int generation_read(const char *sysfs, unsigned cpu, uint64_t *ret) {
        _cleanup_free_ char *path = NULL;
        struct stat st;

        if (asprintf(&path, "%s/devices/system/cpu/cpu%u/topology", sysfs, cpu) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        *ret = stat(path, &st) == 0 ? st.st_ino : 0;
        return 0;
}

int cpu_generations_read(const char *sysfs, const CpuSet *cpus, CpuGenerations *ret) {
        _cleanup_(cpu_generations_done) CpuGenerations g = CPU_GENERATIONS_NULL;
        size_t n = 0;
        int r;

        CPU_FOREACH (cpu, cpus)
                n = (size_t) cpu + 1;
        r = cpu_generations_new(n, &g);
        if (r < 0)
                return r;
        CPU_FOREACH (cpu, cpus) {
                r = generation_read(sysfs, (unsigned) cpu, &g.ids[cpu]);
                if (r < 0)
                        return r;
        }
        *ret = g;
        g = CPU_GENERATIONS_NULL;
        return 0;
}

int cpu_generations_load(const void *ids, size_t n, CpuGenerations *ret) {
        int r = cpu_generations_new(n, ret);

        if (r == 0 && n > 0)
                memcpy(ret->ids, ids, n * sizeof(uint64_t));
        return r;
}

bool cpu_generations_differ(const CpuGenerations *before, const CpuGenerations *now, unsigned cpu) {
        /* one that was unknown before has come online since */
        return cpu < before->n && cpu < now->n && now->ids[cpu] != 0 &&
               before->ids[cpu] != now->ids[cpu];
}

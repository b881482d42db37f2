/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lives.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int lives_new(size_t n, Lives *ret) {
        Lives l = { .n = n, .ids = calloc(MAX(n, 1u), sizeof(uint64_t)) };

        if (!l.ids)
                return -ENOMEM;
        *ret = l;
        return 0;
}

void lives_done(Lives *l) {
        free(l->ids);
        *l = LIVES_NULL;
}

static int life_read(const char *sysfs, unsigned cpu, uint64_t *ret) {
        _cleanup_free_ char *path = NULL;
        struct stat st;

        if (asprintf(&path, "%s/devices/system/cpu/cpu%u/topology", sysfs, cpu) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        *ret = stat(path, &st) == 0 ? st.st_ino : 0;
        return 0;
}

int lives_read(const char *sysfs, const CpuSet *cpus, Lives *ret) {
        _cleanup_(lives_done) Lives l = LIVES_NULL;
        size_t n = 0;
        int r;

        CPU_FOREACH (cpu, cpus)
                n = (size_t) cpu + 1;
        r = lives_new(n, &l);
        if (r < 0)
                return r;
        CPU_FOREACH (cpu, cpus) {
                r = life_read(sysfs, (unsigned) cpu, &l.ids[cpu]);
                if (r < 0)
                        return r;
        }
        *ret = l;
        l = LIVES_NULL;
        return 0;
}

int lives_load(const void *ids, size_t n, Lives *ret) {
        int r = lives_new(n, ret);

        if (r == 0 && n > 0)
                memcpy(ret->ids, ids, n * sizeof(uint64_t));
        return r;
}

bool lives_differ(const Lives *before, const Lives *now, unsigned cpu) {
        /* one that was not known then came, or went and came, in between */
        return cpu < before->n && cpu < now->n && now->ids[cpu] != 0 &&
               before->ids[cpu] != now->ids[cpu];
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pmu.h"

#include <fcntl.h>
#include <string.h>

#include "core/number.h"
#include "perf/pmu/sysfs.h"

#define PERF_HW_TYPE_SHIFT 32 /* PERF_PMU_TYPE_SHIFT of newer <linux/perf_event.h> */

static const struct {
        const char *name;
        bool closes_to_yield;
} kinds[_PMU_KIND_MAX] = {
        [PMU_CORE] = { "core", false },
        [PMU_SOFTWARE] = { "software", false },
        [PMU_BREAKPOINT] = { "breakpoint", true },
        [PMU_TRACEPOINT] = { "tracepoint", false },
        [PMU_UNCORE] = { "uncore", true },
        [PMU_OTHER] = { "other", true },
};

/* PMUs whose kind is known by name or type, without reading more of their files. */
static const struct {
        const char *name;
        int64_t type;
        PmuKind kind;
} known[] = {
        { "software", PERF_TYPE_SOFTWARE, PMU_SOFTWARE },
        { "breakpoint", PERF_TYPE_BREAKPOINT, PMU_BREAKPOINT },
        { "tracepoint", PERF_TYPE_TRACEPOINT, PMU_TRACEPOINT },
        { "kprobe", -1, PMU_TRACEPOINT },
        { "uprobe", -1, PMU_TRACEPOINT },
};

static void pmu_done(Pmu *pmu) {
        free(pmu->name);
        free(pmu->probed);
        cpuset_done(&pmu->cpus);
        *pmu = (Pmu){};
}

static int read_cpus(int directory, const char *path, CpuSet *ret) {
        _cleanup_free_ char *text = NULL;
        int r;

        r = sysfs_read(directory, path, &text);
        if (r < 0)
                return r;
        r = cpuset_parse(ret, text, NULL);
        return r > 0 ? -EBADMSG : r;
}

static int pmu_read_type(int directory, uint32_t *ret) {
        _cleanup_free_ char *text = NULL;
        uint64_t type;
        int r;

        r = sysfs_read(directory, "type", &text);
        if (r < 0)
                return r;
        r = number_parse(text, &type);
        if (r < 0 || type > UINT32_MAX)
                return -EBADMSG;
        *ret = (uint32_t) type;
        return 0;
}

/* Core PMUs list their CPUs in "cpus" (hybrid x86, arm). PMUs shared by several CPUs list in
 * "cpumask" the CPU of each group on which to open (sysfs-bus-event_source-devices-uncore); as
 * large servers have thousands of these, "cpumask" is read first. */
static int pmu_read_kind(int directory, Pmu *pmu, const CpuSet *possible) {
        int r;

        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (strcmp(pmu->name, known[i].name) == 0 || pmu->type == known[i].type) {
                        pmu->kind = known[i].kind;
                        return cpuset_copy(&pmu->cpus, possible);
                }

        pmu->kind = PMU_UNCORE;
        r = read_cpus(directory, "cpumask", &pmu->cpus);
        if (r != -ENOENT)
                return r;
        pmu->kind = PMU_CORE;
        r = read_cpus(directory, "cpus", &pmu->cpus);
        if (r != -ENOENT)
                return r;
        if (strcmp(pmu->name, "cpu") != 0 && pmu->type != PERF_TYPE_RAW)
                pmu->kind = PMU_OTHER;
        return cpuset_copy(&pmu->cpus, possible);
}

/* Negative: out of memory or descriptors. Positive: this PMU cannot be read. */
static int pmu_read(Pmu *ret, int directory, const char *name, const CpuSet *possible) {
        _cleanup_(pmu_done) Pmu pmu = {};
        _cleanup_close_ int unit = -1;
        int r;

        pmu.name = strdup(name);
        pmu.probed = strdup("");
        if (!pmu.name || !pmu.probed)
                return -ENOMEM;
        unit = sysfs_open(directory, name);
        r = unit < 0 ? unit : pmu_read_type(unit, &pmu.type);
        if (r == 0)
                r = pmu_read_kind(unit, &pmu, possible);
        if (sysfs_is_fatal(r))
                return r;
        if (r < 0)
                return 1;
        pmu.closes_to_yield = kinds[pmu.kind].closes_to_yield;
        *ret = pmu;
        pmu = (Pmu){};
        return 0;
}

static int pmu_table_add(void *userdata, int directory, const char *name) {
        PmuTable *t = userdata;
        Pmu pmu;
        int r;

        r = pmu_read(&pmu, directory, name, &t->possible);
        if (r != 0)
                return MIN(r, 0);
        /* grow by doubling: room is there up to the next power of two */
        if ((t->n_pmus & (t->n_pmus - 1)) == 0) {
                Pmu *pmus = reallocarray(t->pmus, t->n_pmus ? t->n_pmus * 2 : 1, sizeof(Pmu));

                if (!pmus) {
                        pmu_done(&pmu);
                        return -ENOMEM;
                }
                t->pmus = pmus;
        }
        t->pmus[t->n_pmus++] = pmu;
        return 0;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(((const Pmu *) a)->name, ((const Pmu *) b)->name);
}

/* Reads a list in devices/system/cpu; other stands in for one that is missing or empty. */
static int pmu_table_read_cpus(const PmuTable *t, const char *list, const CpuSet *other,
                               CpuSet *ret) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        _cleanup_free_ char *path = NULL;
        int r;

        if (asprintf(&path, "%s/devices/system/cpu/%s", t->sysfs, list) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = read_cpus(AT_FDCWD, path, &cpus);
        if (sysfs_is_fatal(r))
                return r;
        if (r < 0 || cpuset_is_empty(&cpus))
                return cpuset_copy(ret, other);
        *ret = cpus;
        cpus = CPUSET_NULL;
        return 0;
}

static int pmu_table_read_machine(PmuTable *t) {
        _cleanup_(cpuset_done) CpuSet first = CPUSET_NULL;
        int r;

        r = cpuset_add(&first, 0);
        if (r == 0)
                r = pmu_table_read_cpus(t, "possible", &first, &t->possible);
        if (r == 0)
                r = pmu_table_read_cpus(t, "present", &t->possible, &t->present);
        if (r == 0)
                r = pmu_table_read_cpus(t, "online", &t->present, &t->online);
        if (r == 0)
                r = cpu_generations_read(t->sysfs, &t->online, &t->generations);
        return r;
}

int pmu_table_load(PmuTable *ret, const char *sysfs) {
        _cleanup_(pmu_table_done) PmuTable t = {};
        _cleanup_close_ int devices = -1;
        _cleanup_free_ char *path = NULL;
        int r;

        if (asprintf(&path, "%s/bus/event_source/devices", sysfs) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        t.sysfs = strdup(sysfs);
        if (!t.sysfs)
                return -ENOMEM;
        devices = sysfs_open(AT_FDCWD, path);
        if (devices < 0)
                return devices;
        r = pmu_table_read_machine(&t);
        if (r == 0)
                r = sysfs_visit(devices, pmu_table_add, &t);
        if (r < 0)
                return r;

        if (t.n_pmus > 0)
                qsort(t.pmus, t.n_pmus, sizeof(Pmu), compare_names);
        for (size_t i = 0; i < t.n_pmus; i++)
                t.pmus[i].index = (unsigned) i;
        *ret = t;
        t = (PmuTable){};
        return 0;
}

void pmu_table_done(PmuTable *t) {
        for (size_t i = 0; i < t->n_pmus; i++)
                pmu_done(&t->pmus[i]);
        free(t->pmus);
        free(t->sysfs);
        cpuset_done(&t->possible);
        cpuset_done(&t->present);
        cpuset_done(&t->online);
        cpu_generations_done(&t->generations);
        *t = (PmuTable){};
}

int pmu_table_refresh_online(PmuTable *t, CpuSet *ret_online, CpuGenerations *ret_generations) {
        _cleanup_(cpuset_done) CpuSet online = CPUSET_NULL;
        CpuGenerations generations;
        int r;

        r = pmu_table_read_cpus(t, "online", &t->present, &online);
        if (r == 0)
                r = cpu_generations_read(t->sysfs, &online, &generations);
        if (r < 0)
                return r;
        *ret_online = t->online;
        *ret_generations = t->generations;
        t->online = online;
        t->generations = generations;
        online = CPUSET_NULL;
        return 0;
}

static int pmu_read_mask(const Pmu *pmu, const char *sysfs, const char *file, CpuSet *ret) {
        char path[4096];

        if (snprintf(path, sizeof(path), "%s/bus/event_source/devices/%s/%s", sysfs, pmu->name,
                     file) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        return read_cpus(AT_FDCWD, path, ret);
}

/* The unit is counted on another CPU now. */
static int pmu_refresh_uncore(Pmu *pmu, const char *sysfs) {
        CpuSet cpus = CPUSET_NULL;
        int r = pmu_read_mask(pmu, sysfs, "cpumask", &cpus);

        if (r < 0)
                return r;
        cpuset_done(&pmu->cpus);
        pmu->cpus = cpus;
        return 0;
}

/* On hybrid machines the kernel knows whose a CPU is when it starts for the first time. One that
 * goes offline comes back as it was. */
static int pmu_refresh_core(Pmu *pmu, const char *sysfs) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        int r = pmu_read_mask(pmu, sysfs, "cpus", &cpus);

        CPU_FOREACH (cpu, &cpus)
                if (r >= 0)
                        r = cpuset_add(&pmu->cpus, (unsigned) cpu);
        return r;
}

int pmu_table_refresh_masks(PmuTable *t) {
        for (size_t i = 0; i < t->n_pmus; i++) {
                Pmu *pmu = &t->pmus[i];
                int r = pmu->kind == PMU_UNCORE ? pmu_refresh_uncore(pmu, t->sysfs)
                        : pmu->kind == PMU_CORE ? pmu_refresh_core(pmu, t->sysfs)
                                                : 0;

                if (sysfs_is_fatal(r))
                        return r;
        }
        return 0;
}

Pmu *pmu_table_find(const PmuTable *t, const char *name) {
        Pmu key = { .name = (char *) name };

        return t->n_pmus == 0 ? NULL
                              : bsearch(&key, t->pmus, t->n_pmus, sizeof(Pmu), compare_names);
}

static Pmu *find_type(const PmuTable *t, uint64_t type) {
        for (size_t i = 0; i < t->n_pmus; i++)
                if (t->pmus[i].type == type)
                        return &t->pmus[i];
        return NULL;
}

/* The PMU of generic events that name none: the one registered as PERF_TYPE_RAW (cpu_core on hybrid
 * x86), which is lower than any dynamic type. On arm there is none, and the kernel tries all PMUs;
 * here the first registered one is taken. */
static Pmu *find_core(const PmuTable *t) {
        Pmu *found = NULL;

        for (size_t i = 0; i < t->n_pmus; i++)
                if (t->pmus[i].kind == PMU_CORE && (!found || t->pmus[i].type < found->type))
                        found = &t->pmus[i];
        return found;
}

Pmu *pmu_table_find_event(const PmuTable *t, uint32_t type, uint64_t config) {
        uint64_t chosen = config >> PERF_HW_TYPE_SHIFT;
        Pmu *found;

        switch (type) {
        case PERF_TYPE_HARDWARE:
        case PERF_TYPE_HW_CACHE:
                if (chosen == 0)
                        return find_core(t);
                found = find_type(t, chosen);
                return found && found->kind == PMU_CORE ? found : NULL;
        case PERF_TYPE_RAW:
                return find_core(t);
        default:
                return find_type(t, type);
        }
}

const char *pmu_kind_name(PmuKind kind) {
        return kinds[kind].name;
}

Shape pmu_whole(const Pmu *pmu) {
        return (Shape){ .general = pmu->counters, .fixed = (UINT32_C(1) << pmu->n_fixed) - 1 };
}

uint32_t pmu_fixed_bit(const Pmu *pmu, const char *name) {
        for (unsigned i = 0; i < pmu->n_fixed; i++)
                if (strcmp(pmu->fixed[i].name, name) == 0)
                        return UINT32_C(1) << i;
        return 0;
}

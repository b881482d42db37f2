/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "generic-event.h"

#include <stdio.h>
#include <string.h>

#include "perf/event/modifier.h"

#define NAME_MAX_BYTES 64u

static const struct {
        const char *name;
        uint32_t type;
        uint64_t config;
        const char *description;
} generic[] = {
#define HW(name, config, description)                                                              \
        { name, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config, description }
        HW("cycles", CPU_CYCLES, "CPU cycles"),
        HW("cpu-cycles", CPU_CYCLES, "CPU cycles"),
        HW("instructions", INSTRUCTIONS, "instructions retired"),
        HW("cache-references", CACHE_REFERENCES, "accesses to the last level cache"),
        HW("cache-misses", CACHE_MISSES, "misses of the last level cache"),
        HW("branches", BRANCH_INSTRUCTIONS, "branches retired"),
        HW("branch-instructions", BRANCH_INSTRUCTIONS, "branches retired"),
        HW("branch-misses", BRANCH_MISSES, "branches that were mispredicted"),
        HW("bus-cycles", BUS_CYCLES, "bus cycles"),
        HW("stalled-cycles-frontend", STALLED_CYCLES_FRONTEND, "cycles stalled in the front end"),
        HW("idle-cycles-frontend", STALLED_CYCLES_FRONTEND, "cycles stalled in the front end"),
        HW("stalled-cycles-backend", STALLED_CYCLES_BACKEND, "cycles stalled in the back end"),
        HW("idle-cycles-backend", STALLED_CYCLES_BACKEND, "cycles stalled in the back end"),
        HW("ref-cycles", REF_CPU_CYCLES, "cycles at a constant reference frequency"),
#undef HW
#define SW(name, config, description)                                                              \
        { name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config, description }
        SW("cpu-clock", CPU_CLOCK, "nanoseconds of the CPU's clock"),
        SW("task-clock", TASK_CLOCK, "nanoseconds that the task ran"),
        SW("page-faults", PAGE_FAULTS, "page faults, minor and major"),
        SW("faults", PAGE_FAULTS, "page faults, minor and major"),
        SW("minor-faults", PAGE_FAULTS_MIN, "page faults that needed no disk"),
        SW("major-faults", PAGE_FAULTS_MAJ, "page faults that waited for a disk"),
        SW("context-switches", CONTEXT_SWITCHES, "switches to another task"),
        SW("cs", CONTEXT_SWITCHES, "switches to another task"),
        SW("cpu-migrations", CPU_MIGRATIONS, "moves of a task to another CPU"),
        SW("migrations", CPU_MIGRATIONS, "moves of a task to another CPU"),
        SW("alignment-faults", ALIGNMENT_FAULTS, "unaligned accesses that the kernel handled"),
        SW("emulation-faults", EMULATION_FAULTS, "instructions that the kernel emulated"),
        SW("dummy", DUMMY, "counts nothing"),
        SW("bpf-output", BPF_OUTPUT, "what BPF programs write"),
        SW("cgroup-switches", CGROUP_SWITCHES, "switches to a task of another cgroup"),
#undef SW
};

/* HW_CACHE events are made of three parts; not every cache has every operation. */
static const struct {
        const char *name;
        uint64_t config;
        unsigned operations; /* bits, by PERF_COUNT_HW_CACHE_OP_* */
} caches[] = {
        { "L1-dcache", PERF_COUNT_HW_CACHE_L1D, 7 }, { "L1-icache", PERF_COUNT_HW_CACHE_L1I, 5 },
        { "LLC", PERF_COUNT_HW_CACHE_LL, 7 },        { "dTLB", PERF_COUNT_HW_CACHE_DTLB, 7 },
        { "iTLB", PERF_COUNT_HW_CACHE_ITLB, 1 },     { "branch", PERF_COUNT_HW_CACHE_BPU, 1 },
        { "node", PERF_COUNT_HW_CACHE_NODE, 7 },
};

static const struct {
        const char *all, *misses;
} operations[] = {
        [PERF_COUNT_HW_CACHE_OP_READ] = { "loads", "load-misses" },
        [PERF_COUNT_HW_CACHE_OP_WRITE] = { "stores", "store-misses" },
        [PERF_COUNT_HW_CACHE_OP_PREFETCH] = { "prefetches", "prefetch-misses" },
};

static int visit_cache(size_t cache, size_t operation, bool misses, GenericEventVisitor f,
                       void *userdata) {
        const char *words = misses ? operations[operation].misses : operations[operation].all;
        char name[NAME_MAX_BYTES], description[NAME_MAX_BYTES];

        if (!(caches[cache].operations & (1u << operation)))
                return 0;
        (void) snprintf(name, sizeof(name), "%s-%s", caches[cache].name, words);
        (void) snprintf(description, sizeof(description), "%s %s", caches[cache].name, words);
        return f(userdata, name, PERF_TYPE_HW_CACHE,
                 caches[cache].config | operation << 8 |
                         (misses ? PERF_COUNT_HW_CACHE_RESULT_MISS : 0) << 16,
                 description);
}

int generic_event_visit(GenericEventVisitor f, void *userdata) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(generic); i++)
                r = f(userdata, generic[i].name, generic[i].type, generic[i].config,
                      generic[i].description);
        for (size_t i = 0; i < ELEMENTSOF(caches); i++)
                for (size_t op = 0; op < ELEMENTSOF(operations); op++)
                        for (int misses = 0; r == 0 && misses <= 1; misses++)
                                r = visit_cache(i, op, misses, f, userdata);
        return r;
}

typedef struct Search {
        const char *name;
        size_t length;
        struct perf_event_attr *attr; /* may be NULL */
} Search;

static int search_name(void *userdata, const char *name, uint32_t type, uint64_t config,
                       const char *description) {
        Search *s = userdata;

        if (strlen(name) != s->length || strncasecmp(name, s->name, s->length) != 0)
                return 0;
        if (s->attr) {
                s->attr->type = type;
                s->attr->config = config;
        }
        return 1;
}

bool generic_event_is_name(const char *string) {
        Search s = { .name = string, .length = strcspn(string, ":") };

        return generic_event_visit(search_name, &s) != 0;
}

bool generic_event_parse(const char *string, struct perf_event_attr *attr) {
        struct perf_event_attr found = *attr;
        Search s = { .name = string, .length = strcspn(string, ":"), .attr = &found };
        const char *colon = string + s.length;

        if (*colon && (!colon[1] || !modifiers_apply(colon + 1, &found)))
                return false;
        if (generic_event_visit(search_name, &s) == 0)
                return false;
        *attr = found;
        return true;
}

typedef struct Naming {
        uint32_t type;
        uint64_t config;
        char *ret;
        size_t size;
} Naming;

static int name_event(void *userdata, const char *name, uint32_t type, uint64_t config,
                      const char *description) {
        Naming *n = userdata;

        if (type != n->type || config != n->config)
                return 0;
        (void) snprintf(n->ret, n->size, "%s", name);
        return 1;
}

bool generic_event_name(uint32_t type, uint64_t config, char *ret, size_t size) {
        Naming n = { .type = type, .config = config, .ret = ret, .size = size };

        return generic_event_visit(name_event, &n) != 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "test-kernel-model.h"

#define X86                                                                                        \
        (MODEL_HW(CPU_CYCLES) | MODEL_HW(INSTRUCTIONS) | MODEL_HW(CACHE_REFERENCES) |              \
         MODEL_HW(CACHE_MISSES) | MODEL_HW(BRANCH_INSTRUCTIONS) | MODEL_HW(BRANCH_MISSES))
#define INTEL  (X86 | MODEL_HW(BUS_CYCLES) | MODEL_HW(REF_CPU_CYCLES))
#define ZEN    (X86 | MODEL_HW(STALLED_CYCLES_FRONTEND) | MODEL_HW(STALLED_CYCLES_BACKEND))
#define CACHES (MODEL_HW(CACHE_REFERENCES) | MODEL_HW(CACHE_MISSES))
#define ARM    X86

#define INST                                                                                       \
        { .generic = MODEL_HW(INSTRUCTIONS) }
#define CYCLES                                                                                     \
        { .generic = MODEL_HW(CPU_CYCLES) }
#define REF                                                                                        \
        { .generic = MODEL_HW(REF_CPU_CYCLES), .only = true }
#define SLOTS                                                                                      \
        { .raw = 0x400, .only = true }
#define PMCCNTR                                                                                    \
        { .generic = MODEL_HW(CPU_CYCLES), .raw = 0x11 }
#define ALL_FIXED "instructions cycles ref-cycles"

const ModelMachine model_machines[] = {
        { "intel",
          "intel-desktop",
          4,
          { { "cpu", 4, 0, 3, 4, INTEL, 0, { INST, CYCLES, REF } } },
          { { 4, ALL_FIXED } } },
        /* hyper-threading switched off: each CPU has the counters of both threads */
        { "intel-no-ht",
          "intel-desktop",
          4,
          { { "cpu", 4, 0, 3, 8, INTEL, 0, { INST, CYCLES, REF } } },
          { { 8, ALL_FIXED } } },
        /* before fixed counters, and as some virtual machines are */
        { "intel-0-fixed", "intel-desktop", 2, { { "cpu", 4, 0, 1, 2, X86 } }, { { 2, "" } } },
        { "intel-1-fixed",
          "intel-desktop",
          2,
          { { "cpu", 4, 0, 1, 4, X86, 0, { INST } } },
          { { 4, "instructions" } } },
        { "intel-2-fixed",
          "intel-desktop",
          2,
          { { "cpu", 4, 0, 1, 4, X86, 0, { INST, CYCLES } } },
          { { 4, "instructions cycles" } } },
        /* caches are counted by the first four of eight; slots has a counter too */
        { "golden-cove",
          "intel-slots",
          4,
          { { "cpu", 4, 0, 3, 8, INTEL, CACHES, { INST, CYCLES, REF, SLOTS } } },
          { { 8, ALL_FIXED " slots" } } },
        { "zen", "amd-uncore", 4, { { "cpu", 4, 0, 3, 6, ZEN } }, { { 6, "" } } },
        { "hybrid",
          "intel-hybrid",
          24,
          { { "cpu_core", 4, 0, 15, 8, INTEL, CACHES, { INST, CYCLES, REF, SLOTS } },
            { "cpu_atom", 10, 16, 23, 6, INTEL, 0, { INST, CYCLES, REF } } },
          { { 8, ALL_FIXED " slots" }, { 6, ALL_FIXED } } },
        { "arm",
          "arm-server",
          4,
          { { "armv8_pmuv3_0", 8, 0, 3, 6, ARM, 0, { PMCCNTR }, true } },
          { { 6, "cycles" } } },
        /* QEMU's with -icount */
        { "arm-qemu",
          "arm-server",
          2,
          { { "armv8_pmuv3_0",
              8,
              0,
              1,
              6,
              MODEL_HW(CPU_CYCLES) | MODEL_HW(INSTRUCTIONS),
              0,
              { PMCCNTR },
              true } },
          { { 6, "cycles" } } },
        /* QEMU's without: of generic events there is cycles alone, and sysfs names others */
        { "arm-cycles",
          "arm-server",
          2,
          { { "armv8_pmuv3_0", 8, 0, 1, 6, MODEL_HW(CPU_CYCLES), 0, { PMCCNTR }, true } },
          { { 6, "cycles" } } },
        { "big-little",
          "arm-big-little",
          6,
          { { "armv8_cortex_a53", 9, 0, 3, 6, ARM, 0, { PMCCNTR }, true },
            { "armv8_cortex_a72", 10, 4, 5, 6, ARM, 0, { PMCCNTR }, true } },
          { { 6, "cycles" }, { 6, "cycles" } } },
        { "riscv",
          "riscv",
          4,
          { { "cpu", 4, 0, 3, 6, X86, 0, { INST, CYCLES }, false, true } },
          { { 0, "" } } },
};
const size_t model_n_machines = ELEMENTSOF(model_machines);

const ModelMachine *model_machine(const char *name) {
        for (size_t i = 0; i < model_n_machines; i++)
                if (strcmp(model_machines[i].name, name) == 0)
                        return &model_machines[i];
        abort();
}

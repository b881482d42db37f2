/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* CPU lists. */

#include "core/cpuset.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *list = fuzz_text(data, size), *written = NULL;
        _cleanup_(cpuset_done) CpuSet set = CPUSET_NULL, again = CPUSET_NULL;
        Refusal why = REFUSAL_NULL;
        unsigned n = 0;
        int r;

        r = cpuset_parse(&set, list, &why);
        fuzz_outcome(r, &why);
        if (r > 0)
                return 0;
        CPU_FOREACH (cpu, &set) {
                promise((unsigned) cpu < CPUSET_CPUS_MAX && cpuset_has(&set, (unsigned) cpu));
                n++;
        }
        promise(n == cpuset_count(&set) && cpuset_is_empty(&set) == (n == 0));
        promise(cpuset_format(&set, &written) == 0);
        promise(cpuset_parse(&again, written, NULL) == 0 && cpuset_equal(&set, &again));
        return 0;
}

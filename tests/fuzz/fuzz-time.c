/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lengths of time. */

#include "core/timespan.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = fuzz_text(data, size), *padded = NULL;
        uint64_t usec = 4711, again;
        int r = timespan_parse(text, &usec);

        promise(r == 0 || r == -EINVAL || r == -ERANGE);
        if (r < 0) {
                promise(usec == 4711); /* untouched */
                return 0;
        }
        promise(asprintf(&padded, " %s ", text) >= 0);
        promise(timespan_parse(padded, &again) == 0 && again == usec);
        return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "perf/event/generic-event.h"

static const AttrPlace fields[] = {
        ATTR_CONFIG, ATTR_CONFIG1, ATTR_CONFIG2, ATTR_CONFIG3, ATTR_CONFIG4, ATTR_BP_TYPE,
};

/* With none of the fields beside config: a driver may read them for a generic event too. */
static bool event_is_generic(const Attr *a, char ret[static EVENT_WORDS_SIZE]) {
        uint64_t type = attr_number(a, ATTR_TYPE), config = attr_number(a, ATTR_CONFIG);

        for (size_t i = 1; i < ELEMENTSOF(fields); i++)
                if (attr_number(a, fields[i]) != 0)
                        return false;
        /* above is the PMU's type: perf_event_open(2), PERF_PMU_TYPE_SHIFT */
        if (type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE)
                config &= UINT32_MAX;
        return generic_event_name((uint32_t) type, config, ret, EVENT_WORDS_SIZE);
}

void event_words(const Attr *a, const Pmu *pmu, char ret[static EVENT_WORDS_SIZE]) {
        size_t n;

        if (event_is_generic(a, ret))
                return;
        n = (size_t) snprintf(ret, EVENT_WORDS_SIZE, "%.64s/", pmu->name);
        for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
                uint64_t value = attr_number(a, fields[i]);

                if (value != 0 || fields[i] == ATTR_CONFIG)
                        n += (size_t) snprintf(ret + n, EVENT_WORDS_SIZE - n, "%s%s=0x%" PRIx64,
                                               i > 0 ? "," : "", attr_numbers[fields[i]].name,
                                               value);
        }
        (void) snprintf(ret + n, EVENT_WORDS_SIZE - n, "/");
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "grant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TIME_MAX 32

/* With three digits at most: "143 µs", "12.3 ms", "2.10 s". */
static void time_format(uint64_t usec, char text[static TIME_MAX]) {
        if (usec < USEC_PER_MSEC)
                (void) snprintf(text, TIME_MAX, "%" PRIu64 " \u00b5s", usec);
        else if (usec < USEC_PER_SEC)
                (void) snprintf(text, TIME_MAX, "%" PRIu64 ".%" PRIu64 " ms", usec / USEC_PER_MSEC,
                                usec % USEC_PER_MSEC / 100);
        else
                (void) snprintf(text, TIME_MAX, "%" PRIu64 ".%02" PRIu64 " s", usec / USEC_PER_SEC,
                                usec % USEC_PER_SEC / 10000);
}

char *grant_words(const HoldView *view, bool confirmed, uint64_t latency_usec) {
        _cleanup_free_ char *scope = NULL;
        const char *exclusive;
        char latency[TIME_MAX], *text;
        int r;

        time_format(latency_usec, latency);
        scope = view->state ? hold_view_scope(view) : strdup("the counters");
        if (!scope)
                return NULL;
        exclusive = view->mode && strcmp(view->mode, "exclusive") == 0 ? ", exclusively" : "";
        if (view->state && (!view->pmus || !view->pmus[0]))
                r = asprintf(&text, "this machine has no core PMU: there is nothing to reserve "
                                    "(other PMUs are held with --pmu=NAME)");
        else if (confirmed)
                r = asprintf(&text, "holding %s%s (confirmed in %s)", scope, exclusive, latency);
        else
                r = asprintf(&text,
                             "warning: holding %s%s, but they are not confirmed to be free (after "
                             "%s); in the way: %s",
                             scope, exclusive, latency, view->obstacles ?: "nobody knows who");
        return r < 0 ? NULL : text;
}

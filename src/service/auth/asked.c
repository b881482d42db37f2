/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "asked.h"

#include <stdio.h>
#include <string.h>

#define MORE "..."

static bool list_has(const char *list, const char *word) {
        size_t n = strlen(word);

        for (const char *p = list; (p = strstr(p, word)); p += n)
                if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
                        return true;
        return false;
}

void asked_add(char list[static ASKED_LIST_SIZE], const char *word) {
        size_t used = strlen(list);
        const char *space = used > 0 ? " " : "";

        if (list_has(list, MORE) || list_has(list, word))
                return;
        if (used + 1 + strlen(word) + sizeof(" " MORE) > ASKED_LIST_SIZE)
                word = MORE;
        (void) snprintf(list + used, ASKED_LIST_SIZE - used, "%s%s", space, word);
}

void asked_add_attr(Asked *a, const Attr *attr, const Pmu *pmu) {
        char words[EVENT_WORDS_SIZE];

        event_words(attr, pmu, words);
        asked_add(a->events, words);
        asked_add(a->pmus, pmu->name);
}

void asked_add_events(Asked *a, const Event *events, size_t n_events) {
        for (size_t i = 0; i < n_events; i++)
                for (size_t unit = 0; unit < event_units(&events[i]); unit++) {
                        const Event *e = event_on(&events[i], unit);

                        asked_add_attr(a, &e->full, e->pmu);
                }
}

void asked_set_cpus(Asked *a, const CpuSet *cpus) {
        _cleanup_free_ char *text = NULL;

        asked_add(a->cpus, cpuset_format(cpus, &text) < 0 ? MORE : text);
}

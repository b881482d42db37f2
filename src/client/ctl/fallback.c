/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fallback.h"

#include <stdio.h>
#include <string.h>

#include "core/event-list.h"

#define LETTERS    "ukhGHIp" /* of the modifiers of events */
#define PRIVILEGES "ukh"

/* Whether modifiers of n letters name a privilege level. libpfm4 also spells them u=1. */
static bool names_privilege(const char *part, size_t n) {
        size_t letters = MIN(strspn(part, LETTERS), n), before = strcspn(part, PRIVILEGES);

        if (n > 1 && part[1] == '=')
                return before == 0;
        return letters == n && before < n;
}

static int add_modifier(const char *event, const char *modifier, char **ret) {
        return asprintf(ret, "%s%s", event, modifier) < 0 ? -ENOMEM : 0;
}

int fallback_event(const char *event, char **ret) {
        const char *slash = strrchr(event, '/'), *part = strchr(event, ':');

        *ret = NULL;
        if (strncmp(event, BREAKPOINT_EVENT_PREFIX, strlen(BREAKPOINT_EVENT_PREFIX)) == 0)
                return 0;
        if (slash)
                return names_privilege(slash + 1, strlen(slash + 1))
                               ? 0
                               : add_modifier(event, "u", ret);
        while (part) {
                size_t n = strcspn(++part, ":");

                if (names_privilege(part, n))
                        return 0;
                part = part[n] ? part + n : NULL;
        }
        return add_modifier(event, ":u", ret);
}

static size_t events_count(char *const *events) {
        size_t n = 0;

        while (events[n])
                n++;
        return n;
}

int fallback_events(char *const *events, char ***ret) {
        char **all = calloc(events_count(events) + 1, sizeof(char *));
        bool any = false;
        int r = all ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && events[i]; i++) {
                r = fallback_event(events[i], &all[i]);
                any |= all[i] != NULL;
                if (r == 0 && !all[i]) {
                        all[i] = strdup(events[i]);
                        r = all[i] ? 0 : -ENOMEM;
                }
        }
        if (r < 0 || !any)
                all = event_list_free(all);
        *ret = all;
        return r;
}

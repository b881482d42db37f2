/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event-list.h"

#include <string.h>

/* The end of an event in a list: a comma outside of the slashes of "pmu/a=1,b=2/". */
static size_t event_length(const char *list) {
        size_t length = strcspn(list, ",/");

        if (list[length] != '/' ||
            strncmp(list, BREAKPOINT_EVENT_PREFIX, strlen(BREAKPOINT_EVENT_PREFIX)) == 0)
                return strcspn(list, ",");
        length += 1 + strcspn(list + length + 1, "/");
        return length + strcspn(list + length, ",");
}

char *event_list_next(char **list) {
        char *event = *list;
        size_t length;

        if (!event)
                return NULL;
        length = event_length(event);
        *list = event[length] ? event + length + 1 : NULL;
        event[length] = '\0';
        return event;
}

size_t event_list_count(const char *list) {
        size_t n = 1, length;

        while (list[length = event_length(list)]) {
                list += length + 1;
                n++;
        }
        return n;
}

/* Appends the events of one list to those of events, which has room for them. */
static int list_split(const char *list, char **events) {
        _cleanup_free_ char *copy = strdup(list);
        char *rest = copy, *event;

        if (!copy)
                return -ENOMEM;
        while ((event = event_list_next(&rest))) {
                *events = strdup(event);
                if (!*events++)
                        return -ENOMEM;
        }
        return 0;
}

int event_list_split(char *const *lists, char ***ret) {
        _cleanup_(event_list_freep) char **events = NULL;
        size_t n = 0;

        for (char *const *list = lists; *list; list++)
                n += event_list_count(*list);
        events = calloc(n + 1, sizeof(char *));
        if (!events)
                return -ENOMEM;
        n = 0;
        for (char *const *list = lists; *list; list++) {
                int r = list_split(*list, events + n);

                if (r < 0)
                        return r;
                n += event_list_count(*list);
        }
        *ret = TAKE_PTR(events);
        return 0;
}

char **event_list_free(char **events) {
        for (char **event = events; event && *event; event++)
                free(*event);
        free(events);
        return NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "status-line.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#define DELAY_USEC (100 * USEC_PER_MSEC) /* for changes that come together */
#define STATUS_MAX 128

struct StatusLine {
        const Manager *manager;
        sd_event_source *timer;
        bool armed;
        char sent[STATUS_MAX];
};

static size_t count_holds(const struct HoldList *list) {
        const Hold *h;
        size_t n = 0;

        TAILQ_FOREACH (h, list, list)
                n++;
        return n;
}

static void line_format(const Manager *m, char line[static STATUS_MAX]) {
        size_t granted = count_holds(&m->holds.granted), pending = count_holds(&m->holds.pending);
        size_t counters = m->counters.objects.n, monitors = m->monitors.objects.n;

        if (granted + pending + counters + monitors == 0)
                (void) snprintf(line, STATUS_MAX, "Nothing is held or counted.");
        else
                (void) snprintf(
                        line, STATUS_MAX,
                        "Holds: %zu granted, %zu waiting. Counters: %zu. Registered monitors: %zu.",
                        granted, pending, counters, monitors);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        StatusLine *s = userdata;
        char line[STATUS_MAX];

        s->armed = false;
        line_format(s->manager, line);
        if (strcmp(line, s->sent) == 0)
                return 0;
        memcpy(s->sent, line, sizeof(line));
        (void) sd_notifyf(false, "STATUS=%s", line);
        return 0;
}

void status_line_touch(StatusLine *s) {
        if (!s || s->armed)
                return;
        (void) sd_event_source_set_time_relative(s->timer, DELAY_USEC);
        s->armed = sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT) >= 0;
}

int status_line_new(const Manager *m, StatusLine **ret) {
        StatusLine *s = calloc(1, sizeof(StatusLine));
        int r;

        if (!s)
                return -ENOMEM;
        s->manager = m;
        s->armed = true;
        r = sd_event_add_time_relative(m->context.event, &s->timer, CLOCK_MONOTONIC, 0,
                                       USEC_PER_SEC / 10, on_time, s);
        if (r < 0) {
                free(s);
                return r;
        }
        *ret = s;
        return 0;
}

StatusLine *status_line_free(StatusLine *s) {
        if (!s)
                return NULL;
        sd_event_source_disable_unref(s->timer);
        free(s);
        return NULL;
}

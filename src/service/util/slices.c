/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "slices.h"

static void slices_wait(Slices *s, bool waiting) {
        if (s->waiting == waiting)
                return;
        s->waiting = waiting;
        s->context->n_slices += waiting ? 1 : -1u;
}

static int slices_turn(sd_event_source *source, uint64_t usec, void *userdata) {
        Slices *s = userdata;

        slices_wait(s, false);
        s->slice(s->userdata);
        return 0;
}

/* A timer: a deferred source comes before all others of its priority, each time. */
int slices_init(Slices *s, Context *context, void (*slice)(void *userdata), void *userdata) {
        int r;

        *s = (Slices){ .context = context, .slice = slice, .userdata = userdata };
        r = sd_event_add_time(context->event, &s->turn, CLOCK_MONOTONIC, 0, 1, slices_turn, s);
        return r < 0 ? r : sd_event_source_set_enabled(s->turn, SD_EVENT_OFF);
}

void slices_done(Slices *s) {
        if (s->turn)
                slices_wait(s, false);
        s->turn = sd_event_source_disable_unref(s->turn);
}

void slices_go_on(Slices *s) {
        slices_wait(s, true);
        (void) sd_event_source_set_enabled(s->turn, SD_EVENT_ONESHOT);
}

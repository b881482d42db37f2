/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "turn.h"

#include "core/clock.h"

static void turn_end_wait(Turn *t) {
        TAILQ_REMOVE(&t->turns->waiting, t, entry);
        t->waiting = false;
        if (TAILQ_EMPTY(&t->turns->waiting))
                (void) sd_event_source_set_enabled(t->turns->source, SD_EVENT_OFF);
}

static int turns_take(sd_event_source *source, void *userdata) {
        Turns *all = userdata;
        Turn *t = TAILQ_FIRST(&all->waiting);

        turn_end_wait(t);
        t->take(t->userdata);
        turns_rest(all);
        return 0;
}

int turns_init(Turns *all, sd_event *event) {
        int r;

        *all = (Turns){};
        TAILQ_INIT(&all->waiting);
        r = sd_event_add_defer(event, &all->source, turns_take, all);
        return r < 0 ? r : sd_event_source_set_enabled(all->source, SD_EVENT_OFF);
}

void turns_done(Turns *all) {
        all->source = sd_event_source_disable_unref(all->source);
}

void turns_rest(Turns *all) {
        all->due_usec = now_usec(CLOCK_MONOTONIC) + SLICE_USEC;
}

void turns_prepare(Turns *all) {
        if (TAILQ_EMPTY(&all->waiting))
                return;
        (void) sd_event_source_set_priority(all->source, now_usec(CLOCK_MONOTONIC) < all->due_usec
                                                                 ? SD_EVENT_PRIORITY_NORMAL + 1
                                                                 : SD_EVENT_PRIORITY_NORMAL - 1);
}

void turn_init(Turn *t, Turns *all, void (*take)(void *userdata), void *userdata) {
        *t = (Turn){ .turns = all, .take = take, .userdata = userdata };
}

void turn_done(Turn *t) {
        if (t->waiting)
                turn_end_wait(t);
}

void turn_wait(Turn *t) {
        if (t->waiting)
                return;
        if (TAILQ_EMPTY(&t->turns->waiting))
                turns_rest(t->turns);
        t->waiting = true;
        TAILQ_INSERT_TAIL(&t->turns->waiting, t, entry);
        (void) sd_event_source_set_enabled(t->turns->source, SD_EVENT_ON);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "schedule.h"

static bool entry_before(const ScheduleEntry *a, const ScheduleEntry *b) {
        if (a->due_usec != b->due_usec)
                return a->due_usec < b->due_usec;
        return a->number < b->number;
}

static void schedule_put(Schedule *s, ScheduleEntry *e, size_t place) {
        s->entries[place] = e;
        e->place = place;
}

/* Moves e up or down from its place to where it belongs. */
static void schedule_settle(Schedule *s, ScheduleEntry *e) {
        size_t place = e->place;

        while (place > 0 && entry_before(e, s->entries[(place - 1) / 2])) {
                schedule_put(s, s->entries[(place - 1) / 2], place);
                place = (place - 1) / 2;
        }
        for (;;) {
                size_t child = place * 2 + 1;

                if (child + 1 < s->n_entries &&
                    entry_before(s->entries[child + 1], s->entries[child]))
                        child++;
                if (child >= s->n_entries || !entry_before(s->entries[child], e))
                        break;
                schedule_put(s, s->entries[child], place);
                place = child;
        }
        schedule_put(s, e, place);
}

void schedule_done(Schedule *s) {
        free(s->entries);
        *s = (Schedule){};
}

int schedule_add(Schedule *s, ScheduleEntry *e) {
        if (s->n_entries == s->n_places) {
                size_t n = MAX(s->n_places * 2, 16u);
                ScheduleEntry **entries = reallocarray(s->entries, n, sizeof(ScheduleEntry *));

                if (!entries)
                        return -ENOMEM;
                s->entries = entries;
                s->n_places = n;
        }
        schedule_put(s, e, s->n_entries++);
        schedule_settle(s, e);
        return 0;
}

void schedule_remove(Schedule *s, ScheduleEntry *e) {
        ScheduleEntry *last = s->entries[--s->n_entries];

        if (last == e)
                return;
        schedule_put(s, last, e->place);
        schedule_settle(s, last);
}

void schedule_move(Schedule *s, ScheduleEntry *e, uint64_t due_usec) {
        e->due_usec = due_usec;
        schedule_settle(s, e);
}

ScheduleEntry *schedule_first(const Schedule *s) {
        return s->n_entries > 0 ? s->entries[0] : NULL;
}

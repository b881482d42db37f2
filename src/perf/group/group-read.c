/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-read.h"

#include "core/clock.h"
#include "perf/group/switch.h"

#define READ_ROUNDS 8 /* attempts to read what is just changing */

/* ---- the kernel's values ---- */

/* Below 0: what was seen at the last reset is taken off what the descriptor tells. */
static bool base_takes_off(const Count *base, uint64_t value) {
        return base->value > INT64_MAX && value < 0 - base->value;
}

/* Who has the descriptor may reset the event too (PERF_EVENT_IOC_RESET), which sets its value to 0
 * and leaves its times. */
static void slot_tell(GroupSlot *s, uint64_t value, uint64_t enabled, uint64_t running) {
        if (base_takes_off(&s->base, value))
                s->base.value = 0;
        s->seen = (Count){ value, enabled, running };
        s->told = true;
}

/* A closed event tells nothing, and neither does a pinned one that the kernel dropped: it reads as
 * end of file. Of a thread that leaves its CPU for the first time events have values a moment
 * before they have times (event_sched_out() and perf_event_read() of kernel/events/core.c). */
static void slot_read(GroupSlot *s) {
        struct {
                uint64_t value, enabled, running;
        } data;
        int rounds = READ_ROUNDS;

        s->told = false;
        do
                if (s->fd < 0 || read(s->fd, &data, sizeof(data)) != sizeof(data))
                        return;
        while (data.enabled == 0 && data.value > 0 && --rounds > 0);
        slot_tell(s, data.value, data.enabled, data.running);
}

/* The same of what a leader tells. */
static bool times_are_late(const Group *g) {
        for (size_t event = 0; event < g->n_events && g->buffer[1] == 0; event++)
                if (g->buffer[GROUP_BUFFER_HEAD + event] > 0)
                        return true;
        return false;
}

/* What a leader with PERF_FORMAT_GROUP tells: nr, time_enabled, time_running, the values. */
static size_t leader_read(Group *g, size_t part) {
        const GroupSlot *leader = group_slot(g, part, 0);
        size_t size = group_buffer_size(g);
        ssize_t n = -1;

        /* -ECHILD: a thread that inherited the events exits, and its group is being taken apart
         * (perf_read_group() of the same) */
        errno = ECHILD;
        for (int i = 0; i < READ_ROUNDS && leader->fd >= 0 &&
                        (n < 0 ? errno == ECHILD : n == (ssize_t) size && times_are_late(g));
             i++)
                n = read(leader->fd, g->buffer, size);
        return n > 0 ? (size_t) n / sizeof(uint64_t) : 0;
}

/* All events of the part at one instant, with one interrupt of their CPU. When a CPU goes offline
 * the kernel takes its groups apart: then the leader tells of itself alone. */
static void part_read_group(Group *g, size_t part) {
        size_t n = leader_read(g, part);
        bool whole = n == GROUP_BUFFER_HEAD + g->n_events && g->buffer[0] == g->n_events;

        for (size_t event = 0; event < g->n_events; event++) {
                GroupSlot *s = group_slot(g, part, event);

                s->told = false;
                if (whole || (event == 0 && n > GROUP_BUFFER_HEAD))
                        slot_tell(s, g->buffer[GROUP_BUFFER_HEAD + event], g->buffer[1],
                                  g->buffer[2]);
                else if (n > 0)
                        slot_read(s);
        }
}

static void part_read(Group *g, size_t part) {
        if (g->n_events > 1)
                part_read_group(g, part);
        else
                slot_read(group_slot(g, part, 0));
}

void group_refresh(Group *g) {
        for (size_t part = 0; part < g->n_parts; part++)
                part_read(g, part);
}

/* ---- sums ---- */

/* Of a thread, only the time in which it ran should be added. That is unknown, and this its
 * maximum. */
static void part_add_missed(Group *g, size_t part, uint64_t now) {
        uint64_t nsec = MAX(now - g->parts[part].dropped_nsec, UINT64_C(1));

        for (size_t event = 0; event < g->n_events; event++)
                group_slot(g, part, event)->base.enabled += nsec;
}

void group_end_dropped(Group *g, size_t part, uint64_t now) {
        if (g->parts[part].dropped_nsec == 0)
                return;
        part_add_missed(g, part, now);
        g->parts[part].dropped_nsec = 0;
}

/* It was read just now: end of file is a drop that nobody has noticed before. */
static void part_end_dropped(Group *g, size_t part) {
        GroupPart *p = &g->parts[part];
        uint64_t now = g->pinned ? now_nsec(CLOCK_MONOTONIC) : 0;

        if (g->pinned && p->dropped_nsec == 0 && group_part_is_open(g, part) &&
            !group_slot(g, part, 0)->told)
                p->dropped_nsec = now;
        group_end_dropped(g, part, now);
}

/* What was missed before the reset of one event is still missed by the others. */
static void group_reset_dropped(Group *g) {
        uint64_t now = g->pinned ? now_nsec(CLOCK_MONOTONIC) : 0;

        for (size_t part = 0; part < g->n_parts && g->pinned; part++) {
                if (g->parts[part].dropped_nsec == 0)
                        continue;
                part_add_missed(g, part, now);
                g->parts[part].dropped_nsec = now;
        }
}

void group_reset(Group *g, size_t event) {
        group_reset_dropped(g);
        g->past[event] = READING_NULL;
        for (size_t part = 0; part < g->n_parts; part++) {
                GroupSlot *s = group_slot(g, part, event);

                part_read(g, part);
                s->base = COUNT_NULL;
                count_subtract(&s->base, &s->seen);
        }
}

void group_fold_part(Group *g, size_t part) {
        switches_flush(); /* what it counts until it is stopped belongs to it */
        part_read(g, part);
        part_end_dropped(g, part);
        for (size_t event = 0; event < g->n_events; event++) {
                GroupSlot *s = group_slot(g, part, event);

                count_add(&s->base, &s->seen);
        }
        group_close_part(g, part);
}

void group_fold(Group *g) {
        for (size_t part = 0; part < g->n_parts; part++)
                group_fold_part(g, part);
}

static Count slot_count(const GroupSlot *s) {
        Count count = s->base;

        count_add(&count, &s->seen);
        return count;
}

/* False: what its descriptor should have counted is unknown. A dropped event can be read again when
 * its thread has ended; what it has missed is added a moment later (group_revive()). */
static bool slot_is_complete(const Group *g, size_t part, size_t event) {
        const GroupPart *p = &g->parts[part];

        return p->dropped_nsec == 0 && (group_slot(g, part, event)->told || p->ended);
}

void group_sum_part(const Group *g, size_t event, size_t part, Reading *ret) {
        Count count = slot_count(group_slot(g, part, event));

        *ret = READING_NULL;
        reading_add(ret, &count);
        if (count.enabled == 0 || !slot_is_complete(g, part, event) ||
            group_part_is_yielded(g, part))
                ret->quality = QUALITY_NOT_COUNTED;
}

/* It does not count, though its CPU runs. */
static bool part_is_silent(const GroupPart *p) {
        return p->yielded && !p->ended;
}

/* The parts of a thread, from the one of unit 0 on, or one. */
static size_t parts_together(const Group *g) {
        return g->scope == GROUP_PROCESS ? group_units(g) : 1;
}

/* A thread is on the CPUs of one PMU at a time, and its events of the others do not run. So they
 * count together: for as long as the thread ran, on any of them. */
static Count parts_count(const Group *g, size_t event, size_t first, size_t n) {
        Count sum = slot_count(group_slot(g, first, event));

        for (size_t part = first + 1; part < first + n; part++) {
                Count count = slot_count(group_slot(g, part, event));

                count.enabled = count.enabled > sum.enabled ? count.enabled - sum.enabled : 0;
                count_add(&sum, &count);
        }
        if (n > 1) /* they were not read at the same instant */
                sum.running = MIN(sum.running, sum.enabled);
        return sum;
}

void group_fold_thread(Group *g, size_t part) {
        size_t n = parts_together(g);

        for (size_t i = part; i < part + n; i++)
                group_fold_part(g, i);
        for (size_t event = 0; event < g->n_events; event++) {
                Count count = parts_count(g, event, part, n);

                reading_add(&g->past[event], &count);
        }
}

void group_sum(const Group *g, size_t event, Reading *ret) {
        size_t n = parts_together(g);

        *ret = g->past[event];
        for (size_t part = 0; part < g->n_parts; part += n) {
                Count count = parts_count(g, event, part, n);

                reading_add(ret, &count);
                for (size_t i = part; i < part + n; i++)
                        if (!slot_is_complete(g, i, event) || part_is_silent(&g->parts[i]))
                                ret->quality = QUALITY_NOT_COUNTED;
        }
        if (ret->enabled == 0 || g->yielded)
                ret->quality = QUALITY_NOT_COUNTED;
}

void group_read(Group *g, size_t event, Reading *ret) {
        group_refresh(g);
        group_sum(g, event, ret);
}

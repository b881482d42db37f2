/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-read.h"

#include "perf/group/group-pinned.h"

/* False: the descriptor tells nothing, as it is closed or a pinned event that the kernel dropped;
 * *ret is what it told last. */
static bool slot_read(GroupSlot *s, Reading *ret) {
        struct {
                uint64_t value, enabled, running;
        } data;
        bool told = s->fd >= 0 && read(s->fd, &data, sizeof(data)) == sizeof(data);

        if (told)
                s->seen = (Reading){ data.value, data.enabled, data.running };
        *ret = s->seen;
        return told;
}

void group_reset(Group *g, size_t event) {
        g->past[event] = READING_NULL;
        for (size_t part = 0; part < g->n_parts; part++) {
                GroupSlot *s = group_slot(g, part, event);
                Reading now;

                (void) slot_read(s, &now);
                s->base = READING_NULL;
                reading_subtract(&s->base, &now);
        }
}

void group_fold_part(Group *g, size_t part) {
        for (size_t event = 0; event < g->n_events; event++) {
                GroupSlot *s = group_slot(g, part, event);
                Reading now;

                (void) slot_read(s, &now);
                reading_add(&s->base, &now);
        }
        group_close_part(g, part);
}

void group_fold(Group *g) {
        for (size_t part = 0; part < g->n_parts; part++)
                group_fold_part(g, part);
}

/* The sum of base and descriptor. False: what the descriptor should have counted is unknown. */
static bool group_read_slot(const Group *g, size_t part, size_t event, Reading *ret) {
        GroupSlot *s = group_slot(g, part, event);
        bool complete = slot_read(s, ret) || g->parts[part].ended;

        if (event > 0 && group_part_is_dropped(g, part))
                complete = false;
        reading_add(ret, &s->base);
        return complete;
}

void group_read_part(const Group *g, size_t event, size_t part, Reading *ret,
                     Quality *ret_quality) {
        bool complete = group_read_slot(g, part, event, ret);

        *ret_quality = complete && !group_part_is_yielded(g, part) ? reading_quality(ret)
                                                                   : QUALITY_UNMEASURED;
}

/* It does not count, though its CPU runs. */
static bool part_is_silent(const GroupPart *p) {
        return p->yielded && !p->ended;
}

void group_read(const Group *g, size_t event, Reading *ret, Quality *ret_quality) {
        Quality worst = QUALITY_EXACT;

        *ret = g->past[event];
        if (ret->enabled > 0)
                worst = reading_quality(ret);
        for (size_t part = 0; part < g->n_parts; part++) {
                Reading reading;

                if (!group_read_slot(g, part, event, &reading) || part_is_silent(&g->parts[part]))
                        worst = QUALITY_UNMEASURED;
                else if (reading.enabled > 0) /* else: a thread that has not run since the start */
                        worst = MAX(worst, reading_quality(&reading));
                reading_add(ret, &reading);
        }
        *ret_quality = ret->enabled == 0 || g->yielded ? QUALITY_UNMEASURED : worst;
}

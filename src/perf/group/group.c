/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group.h"

#include "perf/group/group-fit.h"
#include "perf/group/switch.h"

const char *group_scope_name(GroupScope scope) {
        static const char *const names[_GROUP_SCOPE_MAX] = {
                [GROUP_PROCESS] = "process",
                [GROUP_CPU] = "cpu",
                [GROUP_CGROUP] = "cgroup",
        };
        return names[scope];
}

bool group_closes_to_yield(const Group *g) {
        return g->events[0].pmu->closes_to_yield;
}

/* What one PMU alone counts goes beside what several do if it is not bound to CPUs. */
static bool events_share_pmus(const Event *a, const Event *b) {
        if (a->n_others == 0 || b->n_others == 0)
                return a->n_others == b->n_others ||
                       (a->n_others > 0 ? b : a)->pmu->kind != PMU_CORE;
        if (a->n_others != b->n_others)
                return false;
        for (size_t unit = 0; unit < event_units(a); unit++)
                if (event_on(a, unit)->pmu != event_on(b, unit)->pmu)
                        return false;
        return true;
}

size_t group_units(const Group *g) {
        size_t n = 1;

        for (size_t i = 0; i < g->n_events; i++)
                n = MAX(n, event_units(&g->events[i]));
        return n;
}

int group_allocate(Group *g) {
        g->past = calloc(g->n_events, sizeof(Reading));
        g->buffer = malloc(group_buffer_size(g));
        return g->past && g->buffer ? 0 : -ENOMEM;
}

int group_new(GroupScope scope, Event *events, size_t n_events, Group **ret, Refusal *why) {
        _cleanup_(group_freep) Group *g = calloc(1, sizeof(Group));
        int r;

        if (!g) {
                events_free(events, n_events);
                return -ENOMEM;
        }
        *g = (Group){ .scope = scope, .cgroup = -1, .n_events = n_events, .events = events };
        r = group_allocate(g);
        if (r < 0)
                return r;
        for (size_t i = 1; i < n_events; i++)
                if (!events_share_pmus(&events[0], &events[i]))
                        return refuse(why, REFUSAL_INVALID_EVENT,
                                      "'%s' and '%s' cannot be one group: several PMUs count them, "
                                      "and not the same ones",
                                      events[0].name, events[i].name);
                else if (events[i].pmu->closes_to_yield != events[0].pmu->closes_to_yield)
                        return refuse(why, REFUSAL_INVALID_EVENT,
                                      "'%s' (PMU %s) and '%s' (PMU %s) cannot be one group: they "
                                      "free their counters in different ways",
                                      events[0].name, events[0].pmu->name, events[i].name,
                                      events[i].pmu->name);
        r = n_events > 1 ? group_fit_check(events, n_events, why) : 0;
        if (r != 0)
                return r;
        *ret = TAKE_PTR(g);
        return 0;
}

void group_touch_target(Group *g, size_t target) {
        g->same.n_targets = MIN(g->same.n_targets, target);
}

void group_touch_part(Group *g, size_t part) {
        g->version++;
        g->same.n_parts = MIN(g->same.n_parts, part);
}

void group_close_part(Group *g, size_t part) {
        switches_flush();
        if (group_part_is_open(g, part))
                group_touch_part(g, part);
        /* siblings first: without their leader they would count on their own */
        for (size_t event = g->n_events; event-- > 0;) {
                close_fdp(&group_slot(g, part, event)->fd);
                group_slot(g, part, event)->seen = COUNT_NULL;
        }
}

Group *group_free(Group *g) {
        if (!g)
                return NULL;
        for (size_t part = 0; part < g->n_parts; part++)
                group_close_part(g, part);
        for (size_t i = 0; i < g->n_targets; i++)
                shared_fd_unref(g->targets[i].process);
        close_fd(g->cgroup);
        events_free(g->events, g->n_events);
        free(g->targets);
        free(g->past);
        free(g->buffer);
        free(g->parts);
        free(g->slots);
        free(g);
        return NULL;
}

int group_grow(Group *g, size_t n_more) {
        size_t n = g->n_parts + n_more;
        GroupPart *parts;
        GroupSlot *slots;

        if (n <= g->room)
                return 0;
        n = MAX(n, 2 * g->room); /* process after process is attached */
        parts = reallocarray(g->parts, n, sizeof(GroupPart));
        if (!parts)
                return -ENOMEM;
        g->parts = parts;
        slots = reallocarray(g->slots, n * g->n_events, sizeof(GroupSlot));
        if (!slots)
                return -ENOMEM;
        g->slots = slots;
        g->room = n;
        return 0;
}

void group_add_part(Group *g, GroupPart part) {
        g->mixed |= g->n_parts > 0 && part.target < g->parts[g->n_parts - 1].target;
        g->parts[g->n_parts] = part;
        for (size_t event = 0; event < g->n_events; event++)
                *group_slot(g, g->n_parts, event) = (GroupSlot){ .fd = -1 };
        g->n_parts++;
}

void group_add_thread(Group *g, pid_t tid, pid_t pid, size_t target) {
        size_t n = group_units(g);

        for (size_t unit = 0; unit < n; unit++)
                group_add_part(g, (GroupPart){ .cpu = -1,
                                               .tid = tid,
                                               .pid = pid,
                                               .target = target,
                                               .unit = unit });
}

size_t group_descriptors(const Group *g, size_t event, int *fds, size_t n) {
        size_t n_open = 0;

        for (size_t part = 0; part < g->n_parts; part++) {
                int fd = group_slot(g, part, event)->fd;

                if (fd >= 0 && n_open++ < n)
                        fds[n_open - 1] = fd;
        }
        return n_open;
}

size_t group_n_descriptors(const Group *g) {
        return g->n_parts * g->n_events + g->n_targets + (g->cgroup >= 0);
}

void group_part_ioctl(const Group *g, size_t part, unsigned long request) {
        if (group_part_is_open(g, part))
                switch_event(group_slot(g, part, 0)->fd, request);
}

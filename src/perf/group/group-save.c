/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-save.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "perf/event/event-save.h"
#include "perf/group/group-target.h"
#include "perf/process/process.h"

/* Written to the store as it is. */
typedef struct SavedPart {
        int32_t cpu, tid;
        uint32_t target, flags;
        uint32_t unit;
        int32_t pid;
        uint64_t dropped_nsec;
} SavedPart;

/* Written to the store: never renumber. */
enum {
        PART_OPEN = 1 << 0, /* all its events are */
        PART_ENDED = 1 << 1,
        PART_YIELDED = 1 << 2,
        PART_FLAGS = PART_OPEN | PART_ENDED | PART_YIELDED,
};

/* What must accept a target. Written to the store: never renumber. */
typedef enum SavedPending {
        PENDING_NOBODY = 0,
        PENDING_GROUP = 1,
        PENDING_CALLER = 2, /* a call that ended with the service: the target goes */
        _PENDING_MAX,
} SavedPending;

static const PackField group_fields[] = {
        PACK_FIELD(PACK_U32, "scope", Group, scope),
        PACK_FIELD(PACK_BOOL, "pinned", Group, pinned),
        PACK_FIELD(PACK_BOOL, "descendants", Group, descendants),
        PACK_FIELD(PACK_BOOL, "wanted", Group, wanted),
        PACK_FIELD(PACK_BOOL, "yielded", Group, yielded),
        PACK_FIELD(PACK_U32, "error", Group, error),
};

static const PackField target_fields[] = {
        PACK_FIELD(PACK_U32, "pid", GroupTarget, pid),
        PACK_FIELD(PACK_BOOL, "descendants", GroupTarget, descendants),
        PACK_FIELD(PACK_BOOL, "guarded", GroupTarget, guarded),
        PACK_FIELD(PACK_BOOL, "by-opener", GroupTarget, by_opener),
        PACK_FIELD(PACK_U32, "uid", GroupTarget, uid),
        PACK_FIELD(PACK_U32, "gid", GroupTarget, gid),
};

static const PackField past_fields[] = {
        PACK_FIELD(PACK_U64, "value", Reading, value),
        PACK_FIELD(PACK_U64, "enabled", Reading, enabled),
        PACK_FIELD(PACK_U64, "running", Reading, running),
        PACK_FIELD(PACK_U64, "estimate", Reading, estimate),
        PACK_FIELD(PACK_U32, "quality", Reading, quality),
};

/* ---- writing ---- */

static void save_target(const Group *g, const GroupTarget *t, Pack *p) {
        size_t begin = pack_begin(p, "target");

        pack_struct_set(p, target_fields, ELEMENTSOF(target_fields), t);
        pack_u64(p, "pending",
                 !t->pending       ? PENDING_NOBODY
                 : t->pending == g ? PENDING_GROUP
                                   : PENDING_CALLER);
        pack_end(p, begin);
}

static void save_parts(const Group *g, size_t from, size_t n, Pack *p) {
        _cleanup_free_ SavedPart *saved = calloc(MAX(n, 1u), sizeof(SavedPart));

        if (!saved) {
                p->failed = true;
                return;
        }
        for (size_t i = 0; i < n; i++) {
                const GroupPart *part = &g->parts[from + i];

                saved[i] = (SavedPart){ .cpu = part->cpu,
                                        .tid = part->tid,
                                        .target = (uint32_t) part->target,
                                        .unit = (uint32_t) part->unit,
                                        .pid = part->pid,
                                        .dropped_nsec = part->dropped_nsec };
                if (group_part_is_open(g, from + i))
                        saved[i].flags |= PART_OPEN;
                if (part->ended)
                        saved[i].flags |= PART_ENDED;
                if (part->yielded)
                        saved[i].flags |= PART_YIELDED;
        }
        pack_bytes(p, "parts", saved, n * sizeof(SavedPart));
}

static void save_past(const Group *g, Pack *p) {
        for (size_t i = 0; i < g->n_events; i++) {
                size_t begin = pack_begin(p, "past");

                pack_struct_set(p, past_fields, ELEMENTSOF(past_fields), &g->past[i]);
                pack_end(p, begin);
        }
}

static bool count_is_null(const Count *c) {
        return c->value == 0 && c->enabled == 0 && c->running == 0;
}

/* Leaves them out when all are 0, as for most groups. */
static void save_counts(const char *key, const Count *counts, size_t n, Pack *p) {
        size_t i = 0;

        while (i < n && count_is_null(&counts[i]))
                i++;
        if (i < n)
                pack_bytes(p, key, counts, n * sizeof(Count));
}

/* The counts at this offset of each slot. */
static void save_slots(const Group *g, const char *key, size_t offset, size_t from, size_t n,
                       Pack *p) {
        const GroupSlot *slots = &g->slots[from * g->n_events];
        _cleanup_free_ Count *saved = NULL;

        n *= g->n_events;
        saved = calloc(MAX(n, 1u), sizeof(Count));
        if (!saved) {
                p->failed = true;
                return;
        }
        for (size_t i = 0; i < n; i++)
                memcpy(&saved[i], (const char *) &slots[i] + offset, sizeof(Count));
        save_counts(key, saved, n, p);
}

GroupExtent group_extent(const Group *g) {
        GroupExtent e = { g->n_targets, g->n_parts };

        if (g->mixed)
                return e;
        while (e.n_targets > 0 && g->targets[e.n_targets - 1].pending &&
               g->targets[e.n_targets - 1].pending != g)
                e.n_targets--;
        while (e.n_targets < g->n_targets && e.n_parts > 0 &&
               g->parts[e.n_parts - 1].target >= e.n_targets)
                e.n_parts--;
        return e;
}

void group_note_saved(Group *g) {
        g->same = (GroupExtent){ SIZE_MAX, SIZE_MAX };
}

/* Targets and parts. */
static void save_extent(const Group *g, GroupExtent from, Pack *p) {
        const GroupExtent to = group_extent(g);
        size_t n = to.n_parts - from.n_parts;

        for (size_t i = from.n_targets; i < to.n_targets; i++)
                save_target(g, &g->targets[i], p);
        save_parts(g, from.n_parts, n, p);
        save_slots(g, "bases", offsetof(GroupSlot, base), from.n_parts, n, p);
        /* any other event can be read again, even if its target has ended */
        if (g->pinned)
                save_slots(g, "seen", offsetof(GroupSlot, seen), from.n_parts, n, p);
}

void group_save(const Group *g, Pack *p) {
        pack_struct_set(p, group_fields, ELEMENTSOF(group_fields), g);
        pack_u64(p, "together", true);
        for (size_t i = 0; i < g->n_events; i++) {
                size_t begin = pack_begin(p, "event");

                event_save(&g->events[i], p);
                pack_end(p, begin);
        }
        save_past(g, p);
        save_extent(g, (GroupExtent){}, p);
}

void group_save_more(const Group *g, GroupExtent from, Pack *p) {
        size_t begin = pack_begin(p, "more");

        save_extent(g, from, p);
        pack_end(p, begin);
}

/* A target comes right before the first part that is its own or a later one's, so that more of
 * both are behind all. */
int group_save_descriptors(const Group *g, GroupExtent from, int **ret, size_t *ret_n) {
        const GroupExtent to = group_extent(g);
        size_t n = 0, target = from.n_targets;
        int *fds = calloc((to.n_parts - from.n_parts) * g->n_events + to.n_targets -
                                  from.n_targets + 2,
                          sizeof(int));

        if (!fds)
                return -ENOMEM;
        if (g->cgroup >= 0 && from.n_parts == 0)
                fds[n++] = g->cgroup;
        for (size_t part = from.n_parts; part < to.n_parts; part++) {
                while (target < to.n_targets && target <= g->parts[part].target)
                        fds[n++] = g->targets[target++].process->fd;
                for (size_t event = 0; event < g->n_events && group_part_is_open(g, part); event++)
                        fds[n++] = group_slot(g, part, event)->fd;
        }
        while (target < to.n_targets)
                fds[n++] = g->targets[target++].process->fd;
        *ret = fds;
        *ret_n = n;
        return 0;
}

/* ---- reading ---- */

static size_t count_elements(const Unpack *u, const char *key) {
        size_t place = 0, n = 0;
        Unpack element;

        while (unpack_next(u, key, &place, &element))
                n++;
        return n;
}

static int load_events(Group *g, const Unpack *u, const PmuTable *pmus) {
        size_t n = count_elements(u, "event"), place = 0;
        Unpack element;

        if (n == 0)
                return -EBADMSG;
        g->events = calloc(n, sizeof(Event));
        if (!g->events)
                return -ENOMEM;
        while (unpack_next(u, "event", &place, &element)) {
                int r = event_load(&element, pmus, &g->events[g->n_events]);

                if (r < 0)
                        return r;
                if (g->events[g->n_events].pmu->closes_to_yield !=
                    g->events[0].pmu->closes_to_yield)
                        return -EBADMSG;
                g->n_events++;
        }
        return group_allocate(g);
}

/* Behind those that it has. */
static int load_targets(Group *g, const Unpack *u, const void *caller) {
        size_t n = g->n_targets + count_elements(u, "target"), place = 0;
        GroupTarget *targets;
        Unpack element;

        if ((n > 0 && g->scope != GROUP_PROCESS) || n > UINT32_MAX)
                return -EBADMSG;
        targets = reallocarray(g->targets, MAX(n, 1u), sizeof(GroupTarget));
        if (!targets)
                return -ENOMEM;
        g->targets = targets;
        while (unpack_next(u, "target", &place, &element)) {
                GroupTarget *t = &g->targets[g->n_targets];
                uint64_t pending = unpack_u64(&element, "pending", _PENDING_MAX);
                int r;

                *t = (GroupTarget){};
                g->n_targets++;
                r = unpack_struct(&element, target_fields, ELEMENTSOF(target_fields), t);
                if (r < 0)
                        return r;
                if (t->pid <= 0 || pending >= _PENDING_MAX)
                        return -EBADMSG;
                t->pending = pending == PENDING_NOBODY  ? NULL
                             : pending == PENDING_GROUP ? g
                                                        : caller;
        }
        return 0;
}

static bool part_is_sound(const Group *g, const SavedPart *p) {
        if (p->flags & ~(uint32_t) PART_FLAGS || p->unit >= group_units(g))
                return false;
        if (g->scope == GROUP_PROCESS)
                return p->cpu == -1 && p->tid > 0 && p->pid > 0 && p->target < g->n_targets;
        return p->cpu >= 0 && p->cpu < (int) CPUSET_CPUS_MAX && p->tid == -1 && p->pid == 0 &&
               p->target == 0;
}

static int load_part(Group *g, const SavedPart *p) {
        if (!part_is_sound(g, p) ||
            (g->scope == GROUP_PROCESS && p->unit != g->n_parts % group_units(g)))
                return -EBADMSG;
        group_add_part(g, (GroupPart){ .cpu = p->cpu,
                                       .tid = p->tid,
                                       .pid = p->pid,
                                       .target = p->target,
                                       .unit = p->unit,
                                       .ended = p->flags & PART_ENDED,
                                       .yielded = p->flags & PART_YIELDED,
                                       .dropped_nsec = p->dropped_nsec });
        return 0;
}

/* Behind those that it has. Leaves the parts closed: open tells which were open. */
static int load_parts(Group *g, const Unpack *u, bool **open) {
        size_t size = 0;
        const char *saved = unpack_bytes(u, "parts", &size);
        size_t n = size / sizeof(SavedPart);
        bool *more;

        if (!saved || size % sizeof(SavedPart) != 0 ||
            (g->scope == GROUP_PROCESS && n % group_units(g) != 0))
                return -EBADMSG;
        more = reallocarray(*open, MAX(g->n_parts + n, 1u), sizeof(bool));
        if (!more)
                return -ENOMEM;
        *open = more;
        if (group_grow(g, n) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                SavedPart p;
                int r;

                memcpy(&p, saved + i * sizeof(p), sizeof(p));
                (*open)[g->n_parts] = p.flags & PART_OPEN;
                r = load_part(g, &p);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int load_past(Group *g, const Unpack *u) {
        size_t place = 0;
        Unpack element;

        for (size_t i = 0; i < g->n_events; i++) {
                Reading *past = &g->past[i];
                int r = unpack_next(u, "past", &place, &element)
                                ? unpack_struct(&element, past_fields, ELEMENTSOF(past_fields),
                                                past)
                                : -EBADMSG;

                if (r < 0)
                        return r;
                if (past->quality >= _QUALITY_MAX)
                        return -EBADMSG;
        }
        return 0;
}

/* *ret is NULL: all are 0. */
static int load_counts_of(const Unpack *u, const char *key, size_t n, const char **ret) {
        size_t size = 0;

        *ret = unpack_bytes(u, key, &size);
        return !*ret || size == n * sizeof(Count) ? 0 : -EBADMSG;
}

/* Of the parts from this one on. */
static int load_counts(Group *g, const Unpack *u, size_t from) {
        GroupSlot *slots = &g->slots[from * g->n_events];
        const size_t n = (g->n_parts - from) * g->n_events;
        const char *bases, *seen;
        int r;

        r = load_counts_of(u, "bases", n, &bases);
        if (r == 0)
                r = load_counts_of(u, "seen", n, &seen);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                if (bases)
                        memcpy(&slots[i].base, bases + i * sizeof(Count), sizeof(Count));
                if (seen)
                        memcpy(&slots[i].seen, seen + i * sizeof(Count), sizeof(Count));
        }
        return 0;
}

/* What save_extent() has saved. */
static int load_extent(Group *g, const Unpack *u, const void *caller, bool **open) {
        size_t from = g->n_parts;
        int r = load_targets(g, u, caller);

        if (r == 0)
                r = load_parts(g, u, open);
        return r == 0 ? load_counts(g, u, from) : r;
}

static int load_more(Group *g, const Unpack *more, const void *caller, bool **open) {
        size_t place = 0;
        Unpack element;
        int r = 0;

        while (r == 0 && unpack_next(more, "more", &place, &element))
                r = load_extent(g, &element, caller, open);
        return r;
}

/* ---- its descriptors ---- */

static bool is_directory(int fd) {
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_process(int fd) {
        return process_exists(fd) || errno == ESRCH;
}

static bool is_event(int fd) {
        uint64_t id;

        return ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0;
}

typedef struct Descriptors {
        int *fds;
        size_t n, next;
} Descriptors;

static int take(Descriptors *d, bool (*is_right)(int fd), int *ret) {
        if (d->next == d->n || d->fds[d->next] < 0 || !is_right(d->fds[d->next]))
                return -EBADMSG;
        *ret = TAKE_FD(d->fds[d->next++]);
        return 0;
}

static int take_targets(Group *g, Descriptors *d, size_t *target, size_t n) {
        int r = 0, pidfd;

        for (; *target < n && r == 0; ++*target) {
                r = take(d, is_process, &pidfd);
                if (r == 0)
                        g->targets[*target].process = shared_fd_new(pidfd);
                if (r == 0 && !g->targets[*target].process)
                        r = -ENOMEM;
        }
        return r;
}

/* together: as group_save_descriptors() has them now. Earlier versions had all targets first. */
static int load_descriptors(Group *g, bool together, const bool *open, Descriptors *d) {
        int r = g->scope == GROUP_CGROUP ? take(d, is_directory, &g->cgroup) : 0;
        size_t target = 0;

        if (r == 0 && !together)
                r = take_targets(g, d, &target, g->n_targets);
        for (size_t part = 0; part < g->n_parts && r == 0; part++) {
                r = take_targets(g, d, &target, MIN(g->parts[part].target + 1, g->n_targets));
                for (size_t event = 0; event < g->n_events && open[part] && r == 0; event++)
                        r = take(d, is_event, &group_slot(g, part, event)->fd);
        }
        if (r == 0)
                r = take_targets(g, d, &target, g->n_targets);
        return r < 0 || d->next == d->n ? r : -EBADMSG;
}

static int load_state(Group *g, const Unpack *u, const Unpack *more, const PmuTable *pmus,
                      const void *caller, bool **ret_open) {
        int r = unpack_struct(u, group_fields, ELEMENTSOF(group_fields), g);

        if (r == 0 && (g->scope >= _GROUP_SCOPE_MAX || g->error < 0))
                r = -EBADMSG;
        if (r == 0)
                r = load_events(g, u, pmus);
        if (r == 0)
                r = load_past(g, u);
        if (r == 0)
                r = load_extent(g, u, caller, ret_open);
        return r == 0 ? load_more(g, more, caller, ret_open) : r;
}

int group_load(const Unpack *u, const Unpack *more, const PmuTable *pmus, int *fds, size_t n_fds,
               Group **ret) {
        _cleanup_(group_freep) Group *g = calloc(1, sizeof(Group));
        _cleanup_free_ bool *open = NULL;
        Descriptors d = { .fds = fds, .n = n_fds };
        int r;

        if (!g)
                return -ENOMEM;
        g->cgroup = -1;
        r = load_state(g, u, more, pmus, &d, &open);
        if (r == 0)
                r = load_descriptors(g, unpack_u64(u, "together", false), open, &d);
        if (r < 0)
                return r;
        for (size_t i = g->n_targets; i-- > 0;)
                if (g->targets[i].pending == &d)
                        group_detach(g, i);
        /* a group that was closed to yield still is; of others the current holds decide */
        g->yielded = g->yielded && group_closes_to_yield(g);
        for (size_t part = 0; part < g->n_parts; part++)
                g->parts[part].yielded &= group_closes_to_yield(g);
        *ret = TAKE_PTR(g);
        return 0;
}

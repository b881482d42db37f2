/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-store.h"

#include "perf/group/group-save.h"
#include "service/bus/host-state.h"
#include "service/counter/counter-kept.h"

#define ADDITIONS_MIN 32u

static const PackField set_fields[] = {
        PACK_FIELD(PACK_U32, "uid", SavedSet, uid),
        PACK_FIELD(PACK_BOOL, "persistent", SavedSet, persistent),
        PACK_FIELD(PACK_BOOL, "handed-out", SavedSet, handed_out),
        PACK_FIELD(PACK_BOOL, "configured", SavedSet, configured),
        PACK_FIELD(PACK_BOOL, "monitor", SavedSet, monitor),
        PACK_FIELD(PACK_BOOL, "by-hold", SavedSet, by_hold),
        PACK_FIELD(PACK_BOOL, "pins", SavedSet, pins),
        PACK_FIELD(PACK_STRING, "name", SavedSet, name),
        PACK_FIELD(PACK_STRING, "cpus", SavedSet, cpus),
        PACK_FIELD(PACK_U32, "priority", SavedSet, priority),
        PACK_FIELD(PACK_U32, "yields-to", SavedSet, yields_to),
        PACK_FIELD(PACK_U64, "seq", SavedSet, seq),
};

void saved_set_done(SavedSet *saved) {
        free(saved->name);
        free(saved->cpus);
}

int saved_set_read(SavedSet *saved, const Unpack *u) {
        int r = unpack_struct(u, set_fields, ELEMENTSOF(set_fields), saved);

        if (r < 0)
                return r;
        return saved->name && saved->cpus && saved->yields_to < _PLAN_CLASS_MAX &&
                               (!saved->configured || saved->monitor)
                       ? 0
                       : -EBADMSG;
}

/* ---- writing ---- */

static void pack_users(Pack *p, const CounterSet *set) {
        const CounterUser *u;

        LIST_FOREACH (u, &set->users, users) {
                size_t begin = pack_begin(p, "user");

                host_state_pack_peer(p, u->peer);
                pack_u64(p, "opener", u->peer == set->peer);
                pack_end(p, begin);
        }
}

static void pack_counters(Pack *p, const CounterSet *set) {
        const Counter *c;

        LIST_FOREACH (c, &set->members, members) {
                size_t begin = pack_begin(p, "counter");

                pack_u64(p, "id", c->object.id);
                pack_u64(p, "event", c->event);
                if (c->told_idle)
                        pack_u64(p, "told-idle", true);
                pack_end(p, begin);
        }
}

static void pack_set(Pack *p, const CounterSet *set) {
        SavedSet saved = { .uid = set->uid,
                           .persistent = set->persistent,
                           .handed_out = set->handed_out,
                           .configured = set->configured,
                           .monitor = set->yielder,
                           .by_hold = set->by_hold,
                           .pins = set->pins,
                           .name = set->name,
                           .cpus = set->cpus };
        size_t begin;

        if (set->yielder) {
                saved.priority = set->yielder->yielder.plan.priority;
                saved.yields_to = set->yielder->yielder.plan.klass;
                saved.seq = set->yielder->yielder.plan.seq;
        }
        pack_struct_set(p, set_fields, ELEMENTSOF(set_fields), &saved);
        pack_users(p, set);
        pack_counters(p, set);
        begin = pack_begin(p, "group");
        group_save(set->group, p);
        pack_end(p, begin);
}

void counter_set_forget(CounterSet *set) {
        store_leave(&set->item);
        counter_set_count_kept(set, 0, false);
        counter_set_count_unkept(set, 0);
        counters_save_unkept(set->counters);
}

/* ---- its descriptors ---- */

/* A closed event counts, and takes a counter, until the last copy of its descriptor is closed. */
static StoreUrgency counter_set_urgency(const CounterSet *set) {
        const Group *g = set->group;

        for (size_t i = 0; i < g->n_events; i++)
                if (g->events[i].pmu->kind != PMU_SOFTWARE &&
                    g->events[i].pmu->kind != PMU_TRACEPOINT)
                        return STORE_SCARCE;
        return STORE_SOON;
}

static void counter_set_note_stored(CounterSet *set) {
        set->kept = set->group->version;
        set->stored = group_extent(set->group);
        group_note_saved(set->group);
}

static bool counter_set_is_stored(const CounterSet *set) {
        GroupExtent e = group_extent(set->group);

        return e.n_targets == set->stored.n_targets && e.n_parts == set->stored.n_parts;
}

static int counter_set_keep(CounterSet *set) {
        _cleanup_free_ int *fds = NULL;
        size_t n;
        int r;

        r = group_save_descriptors(set->group, (GroupExtent){}, &fds, &n);
        if (r < 0)
                return r;
        store_keep(&set->item, fds, n, counter_set_urgency(set));
        counter_set_note_stored(set);
        return 0;
}

void counter_set_keep_current(CounterSet *set) {
        Counters *counters = set->counters;
        bool is_new = !set->item.store;

        if (!store_works(counters->context->store) || LIST_EMPTY(&set->members))
                return;
        if (!counter_set_may_be_kept(set)) {
                counter_set_unkeep(set);
                return;
        }
        counter_set_count_unkept(set, 0);
        if (is_new)
                store_enter(counters->context->store, &set->item, STORE_COUNTERS,
                            counter_set_number(set), NULL);
        if ((is_new || set->item.lost || set->kept != set->group->version ||
             !counter_set_is_stored(set)) &&
            counter_set_keep(set) < 0)
                /* better no record than descriptors and values of two different moments */
                store_leave(&set->item);
}

void counter_set_write(CounterSet *set) {
        Pack *p;

        if (!set->item.store || LIST_EMPTY(&set->members))
                return;
        p = store_pack(set->item.store);
        pack_set(p, set);
        store_save(&set->item, p);
}

void counter_set_save(CounterSet *set) {
        counter_set_keep_current(set);
        counter_set_write(set);
        counters_save_unkept(set->counters);
}

/* ---- its targets ---- */

/* Additions are merged before they are many, but not so often that it takes time in proportion. */
static bool counter_set_may_grow(const CounterSet *set) {
        const Group *g = set->group;

        return set->item.store && !set->item.lost && set->item.record != 0 &&
               set->item.n_more < ADDITIONS_MIN + g->n_targets / 4 &&
               g->same.n_targets >= set->stored.n_targets && g->same.n_parts >= set->stored.n_parts;
}

static int counter_set_add(CounterSet *set) {
        _cleanup_free_ int *fds = NULL;
        Pack *p = store_pack(set->item.store);
        size_t n;
        int r;

        r = group_save_descriptors(set->group, set->stored, &fds, &n);
        if (r < 0)
                return r;
        group_save_more(set->group, set->stored, p);
        store_add(&set->item, fds, n, counter_set_urgency(set), p);
        counter_set_note_stored(set);
        return 0;
}

/* Nothing that is new stays: it was never stored. */
static bool counter_set_is_undone(CounterSet *set) {
        if (!counter_set_is_stored(set))
                return false;
        set->kept = set->group->version;
        return true;
}

void counter_set_save_targets(CounterSet *set) {
        if (!counter_set_may_grow(set) || !counter_set_may_be_kept(set) ||
            (!counter_set_is_undone(set) && counter_set_add(set) < 0))
                counter_set_save(set);
        counters_save_unkept(set->counters);
}

void counter_sets_save(Counters *counters, CounterSet *const *sets, size_t n) {
        store_gather(counters->context->store);
        for (size_t i = 0; i < n; i++)
                counter_set_keep_current(sets[i]);
        store_ship(counters->context->store);
        for (size_t i = 0; i < n; i++)
                counter_set_write(sets[i]);
        counters_save_unkept(counters);
}

static bool counter_set_depends_on_holds(const CounterSet *set, uid_t uid) {
        return set->uid == uid && (set->unkept > 0 || set->by_hold);
}

void counters_hold_changed(Counters *counters, uid_t uid) {
        _cleanup_free_ CounterSet **sets = NULL;
        CounterSet *set;
        size_t n = 0, i = 0;

        if (counters->context->host->n_unkept == 0 && counters->n_by_hold == 0)
                return;
        LIST_FOREACH (set, &counters->sets, sets)
                n += counter_set_depends_on_holds(set, uid);
        sets = calloc(MAX(n, 1u), sizeof(CounterSet *));
        if (!sets) /* all stay as they were */
                return;
        LIST_FOREACH (set, &counters->sets, sets)
                if (counter_set_depends_on_holds(set, uid))
                        sets[i++] = set;
        counter_sets_save(counters, sets, n);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-store.h"

#include <inttypes.h>
#include <string.h>

#include "perf/group/group-cpu.h"
#include "perf/group/group-save.h"
#include "perf/group/group-start.h"
#include "perf/group/group-yield.h"
#include "service/hold/hold.h"
#include "service/util/log.h"

/* A set and a user as they are written. */
typedef struct SavedSet {
        uint32_t uid;
        bool persistent, handed_out, configured, monitor, by_hold;
        char *name, *cpus;
        uint32_t priority, yields_to; /* of a monitor */
        uint64_t seq;                 /* likewise */
} SavedSet;

typedef struct SavedUser {
        char *name;
        uint32_t uid;
        uint32_t pid;
        bool other;
        bool opener; /* whose the counters are */
} SavedUser;

static const PackField set_fields[] = {
        PACK_FIELD(PACK_U32, "uid", SavedSet, uid),
        PACK_FIELD(PACK_BOOL, "persistent", SavedSet, persistent),
        PACK_FIELD(PACK_BOOL, "handed-out", SavedSet, handed_out),
        PACK_FIELD(PACK_BOOL, "configured", SavedSet, configured),
        PACK_FIELD(PACK_BOOL, "monitor", SavedSet, monitor),
        PACK_FIELD(PACK_BOOL, "by-hold", SavedSet, by_hold),
        PACK_FIELD(PACK_STRING, "name", SavedSet, name),
        PACK_FIELD(PACK_STRING, "cpus", SavedSet, cpus),
        PACK_FIELD(PACK_U32, "priority", SavedSet, priority),
        PACK_FIELD(PACK_U32, "yields-to", SavedSet, yields_to),
        PACK_FIELD(PACK_U64, "seq", SavedSet, seq),
};

static const PackField user_fields[] = {
        PACK_FIELD(PACK_STRING, "name", SavedUser, name),
        PACK_FIELD(PACK_U32, "uid", SavedUser, uid),
        PACK_FIELD(PACK_U32, "pid", SavedUser, pid),
        PACK_FIELD(PACK_BOOL, "other", SavedUser, other),
        PACK_FIELD(PACK_BOOL, "opener", SavedUser, opener),
};

static void saved_set_done(SavedSet *saved) {
        free(saved->name);
        free(saved->cpus);
}

static void saved_user_done(SavedUser *saved) {
        free(saved->name);
}

/* ---- writing ---- */

static void pack_users(Pack *p, const CounterSet *set) {
        const CounterUser *u;

        LIST_FOREACH (u, &set->users, users) {
                const SavedUser saved = { .name = u->peer->name,
                                          .uid = u->peer->uid,
                                          .pid = (uint32_t) u->peer->pid,
                                          .other = u->other,
                                          .opener = u->peer == set->peer };
                size_t begin = pack_begin(p, "user");

                pack_struct_set(p, user_fields, ELEMENTSOF(user_fields), &saved);
                pack_end(p, begin);
        }
}

static void pack_counters(Pack *p, const CounterSet *set) {
        const Counter *c;

        LIST_FOREACH (c, &set->members, members) {
                size_t begin = pack_begin(p, "counter");

                pack_u64(p, "id", c->id);
                pack_u64(p, "event", c->event);
                pack_end(p, begin);
        }
}

static void pack_set(Pack *p, const CounterSet *set) {
        SavedSet saved = { .uid = set->uid,
                           .persistent = set->persistent,
                           .handed_out = set->handed_out,
                           .configured = set->configured,
                           .monitor = set->monitor,
                           .by_hold = set->by_hold,
                           .name = set->name,
                           .cpus = set->cpus };
        size_t begin;

        if (set->monitor) {
                saved.priority = set->monitor->yielder.plan.priority;
                saved.yields_to = set->monitor->yielder.plan.klass;
                saved.seq = set->monitor->yielder.plan.seq;
        }
        pack_struct_set(p, set_fields, ELEMENTSOF(set_fields), &saved);
        pack_users(p, set);
        pack_counters(p, set);
        begin = pack_begin(p, "group");
        group_save(set->group, p);
        pack_end(p, begin);
}

/* Of its counters the one that was there first: none of the others' numbers is ever used again
 * either. */
static uint64_t counter_set_number(const CounterSet *set) {
        uint64_t first = UINT64_MAX;
        const Counter *c;

        LIST_FOREACH (c, &set->members, members)
                first = MIN(first, c->id);
        return first;
}

/* ---- how much is kept ---- */

static void counter_set_count_kept(CounterSet *set, uint64_t limited, bool by_hold) {
        Service *s = set->service;

        s->n_limited += limited - set->limited;
        set->limited = limited;
        if (set->by_hold != by_hold)
                s->n_by_hold += by_hold ? 1 : -(size_t) 1;
        set->by_hold = by_hold;
}

/* The next run is to know how many counters it does not find. */
static void counter_set_count_unkept(CounterSet *set, size_t n) {
        Service *s = set->service;

        if (set->unkept == n)
                return;
        s->n_unkept += n - set->unkept;
        set->unkept = n;
        s->unkept_changed = true;
        if (s->unkept_told || n == 0)
                return;
        s->unkept_told = true;
        log_plain(LOG_WARNING,
                  "Counters have more than %" PRIu64
                  " descriptors (KeptDescriptors= in perfallocd.conf): some, the latest, will end "
                  "when the service is restarted; persistent ones will not.",
                  s->config.kept_descriptors);
}

/* Systemd looks through all that it keeps for each one that comes. What was kept stays so. */
static bool counter_set_may_be_kept(CounterSet *set) {
        const Service *s = set->service;
        uint64_t n = group_n_descriptors(set->group);

        if (set->monitor || set->persistent)
                counter_set_count_kept(set, 0, false);
        else if (set->limited > 0 || s->n_limited + n <= s->config.kept_descriptors)
                counter_set_count_kept(set, n, false);
        else if (holds_grants(set->service, set->uid, set->group->events[0].pmu))
                counter_set_count_kept(set, 0, true);
        else
                return false;
        return true;
}

static void counters_save_unkept(Service *s) {
        if (s->unkept_changed)
                host_state_save(s);
        s->unkept_changed = false;
}

static size_t counter_set_n_counters(const CounterSet *set) {
        const Counter *c;
        size_t n = 0;

        LIST_FOREACH (c, &set->members, members)
                n++;
        return n;
}

void counter_set_forget(CounterSet *set) {
        store_leave(&set->item);
        counter_set_count_kept(set, 0, false);
        counter_set_count_unkept(set, 0);
        counters_save_unkept(set->service);
}

/* ---- its descriptors ---- */

/* What is closed counts, and takes a counter, until the last copy of its descriptor has gone. */
static StoreUrgency counter_set_urgency(const CounterSet *set) {
        const Group *g = set->group;

        for (size_t i = 0; i < g->n_events; i++)
                if (g->events[i].pmu->kind != PMU_SOFTWARE &&
                    g->events[i].pmu->kind != PMU_TRACEPOINT)
                        return STORE_SCARCE;
        return STORE_SOON;
}

static int counter_set_keep(CounterSet *set) {
        _cleanup_free_ int *fds = NULL;
        size_t n;
        int r;

        r = group_save_descriptors(set->group, &fds, &n);
        if (r < 0)
                return r;
        store_keep(&set->item, fds, n, counter_set_urgency(set));
        set->kept = set->group->version;
        return 0;
}

/* The first half of saving it: its descriptors. */
static void counter_set_keep_current(CounterSet *set) {
        Service *s = set->service;
        bool fresh = !set->item.store;

        if (!store_works(s->store) || LIST_EMPTY(&set->members))
                return;
        if (!counter_set_may_be_kept(set)) {
                store_leave(&set->item);
                counter_set_count_kept(set, 0, false);
                counter_set_count_unkept(set, counter_set_n_counters(set));
                return;
        }
        counter_set_count_unkept(set, 0);
        if (fresh)
                store_enter(s->store, &set->item, STORE_COUNTERS, counter_set_number(set));
        if ((fresh || set->item.lost || set->kept != set->group->version) &&
            counter_set_keep(set) < 0)
                /* better nothing of it than descriptors and values of two different moments */
                store_leave(&set->item);
}

/* The other half: what is known of it. */
static void counter_set_write(CounterSet *set) {
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
        counters_save_unkept(set->service);
}

void counter_sets_save(Service *s, CounterSet *const *sets, size_t n) {
        store_gather(s->store);
        for (size_t i = 0; i < n; i++)
                counter_set_keep_current(sets[i]);
        store_ship(s->store);
        for (size_t i = 0; i < n; i++)
                counter_set_write(sets[i]);
        counters_save_unkept(s);
}

static bool counter_set_heeds_holds(const CounterSet *set, uid_t uid) {
        return set->uid == uid && (set->unkept > 0 || set->by_hold);
}

void counters_hold_changed(Service *s, uid_t uid) {
        _cleanup_free_ CounterSet **sets = NULL;
        CounterSet *set;
        size_t n = 0, i = 0;

        if (s->n_unkept == 0 && s->n_by_hold == 0)
                return;
        LIST_FOREACH (set, &s->sets, sets)
                n += counter_set_heeds_holds(set, uid);
        sets = calloc(MAX(n, 1u), sizeof(CounterSet *));
        if (!sets) /* they are as they were */
                return;
        LIST_FOREACH (set, &s->sets, sets)
                if (counter_set_heeds_holds(set, uid))
                        sets[i++] = set;
        counter_sets_save(s, sets, n);
}

/* ---- and back ---- */

static int restore_user(CounterSet *set, const Unpack *u) {
        _cleanup_(saved_user_done) SavedUser saved = {};
        _cleanup_(peer_unrefp) Peer *peer = NULL;
        CounterUser *user;
        int r;

        r = unpack_struct(u, user_fields, ELEMENTSOF(user_fields), &saved);
        if (r >= 0)
                r = host_state_peer(set->service, saved.name, saved.uid, (pid_t) saved.pid, &peer);
        if (r < 0 || !peer || counter_set_has_user(set, peer))
                return r;
        user = calloc(1, sizeof(CounterUser));
        if (!user)
                return -ENOMEM;
        if (saved.uid != set->uid)
                r = quota_charge_anyway(&set->service->quota, saved.uid, QUOTA_COUNTERS, 1,
                                        &user->charge);
        if (r < 0) {
                free(user);
                return r;
        }
        if (saved.opener && !set->peer)
                set->peer = peer_ref(peer);
        user->peer = TAKE_PTR(peer);
        user->other = saved.other;
        LIST_INSERT_HEAD(&set->users, user, users);
        return 0;
}

static int restore_users(CounterSet *set, const Unpack *u) {
        size_t place = 0;
        Unpack element;
        int r = 0;

        while (r >= 0 && unpack_next(u, "user", &place, &element))
                r = restore_user(set, &element);
        return r;
}

static int restore_counters(CounterSet *set, const Unpack *u) {
        size_t place = 0;
        Unpack element;

        while (unpack_next(u, "counter", &place, &element)) {
                uint64_t event = unpack_u64(&element, "event", UINT64_MAX);
                uint64_t id = unpack_u64(&element, "id", 0);
                Counter *c;
                int r;

                if (id == 0 || event >= set->group->n_events)
                        return -EBADMSG;
                r = counter_add(set, event, id, &c);
                if (r < 0)
                        return r;
                c->announced = true;
        }
        return LIST_EMPTY(&set->members) ? -EBADMSG : 0;
}

static int restore_charges(CounterSet *set) {
        Quota *quota = &set->service->quota;
        int r;

        r = quota_charge_anyway(quota, set->uid, QUOTA_COUNTERS, set->group->n_events,
                                &set->counters);
        if (r < 0)
                return r;
        return quota_charge_anyway(quota, set->uid, QUOTA_DESCRIPTORS,
                                   group_n_descriptors(set->group), &set->descriptors);
}

static int restore_group(Service *s, StoreRecord *record, Group **ret) {
        size_t place = 0;
        Unpack group;

        if (!unpack_next(&record->state, "group", &place, &group))
                return -EBADMSG;
        return group_load(&group, &s->pmus, record->fds, record->n_fds, ret);
}

static bool saved_set_is_sound(const SavedSet *saved) {
        return saved->name && saved->cpus && saved->yields_to < _PLAN_CLASS_MAX &&
               (!saved->configured || saved->monitor);
}

/* The set, without what it has to do with others. */
static int restore_set(Service *s, StoreRecord *record, const SavedSet *saved, CounterSet **ret) {
        _cleanup_(cpuset_done) CpuSet cpus = CPUSET_NULL;
        CounterSetOptions options = {
                .uid = saved->uid,
                .name = saved->name,
                .configured = saved->configured,
                .persistent = saved->persistent,
        };
        Group *group;
        int r;

        r = cpuset_parse(&cpus, saved->cpus, NULL);
        if (r != 0)
                return r < 0 ? r : -EBADMSG;
        r = restore_group(s, record, &group);
        if (r < 0)
                return r;
        if (group->scope != GROUP_PROCESS)
                options.cpus = &cpus;
        r = counter_set_make(s, group, &options, ret);
        if (r < 0)
                return r;
        (*ret)->handed_out = saved->handed_out;
        (*ret)->unclaimed = saved->configured;
        return 0;
}

static int counter_set_restore(Service *s, StoreRecord *record) {
        _cleanup_(saved_set_done) SavedSet saved = {};
        _cleanup_(counter_set_discardp) CounterSet *set = NULL;
        CounterSetOptions role;
        int r;

        r = unpack_struct(&record->state, set_fields, ELEMENTSOF(set_fields), &saved);
        if (r >= 0 && !saved_set_is_sound(&saved))
                r = -EBADMSG;
        if (r >= 0)
                r = restore_set(s, record, &saved, &set);
        if (r >= 0)
                r = restore_counters(set, &record->state);
        if (r >= 0)
                r = restore_users(set, &record->state);
        if (r < 0)
                return r;
        /* those who used it were on a bus that is no more */
        if (LIST_EMPTY(&set->users) && !set->persistent && !set->configured)
                return 0;
        r = restore_charges(set);
        if (!saved.monitor && !saved.persistent)
                counter_set_count_kept(set, saved.by_hold ? 0 : group_n_descriptors(set->group),
                                       saved.by_hold);
        role = (CounterSetOptions){ .priority = saved.priority,
                                    .yields_to = saved.yields_to,
                                    .seq = saved.seq };
        if (r >= 0 && saved.monitor)
                r = counter_set_enroll(set, &role);
        if (r >= 0)
                set = NULL; /* it is in the service's list */
        return r;
}

int counters_restore(Service *s) {
        StoreRecord *record;
        size_t place = 0;

        while ((record = store_next(s->store, STORE_COUNTERS, &place))) {
                int r = counter_set_restore(s, record);

                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        log_plain(LOG_ERR, "Counter %" PRIu64 " is lost in the restart: %s",
                                  record->id, strerror(-r));
        }
        return 0;
}

/* ---- going on ---- */

void counters_go_on(Service *s) {
        CounterSet *set;

        (void) counters_apply(s);
        store_gather(s->store);
        LIST_FOREACH (set, &s->sets, sets) {
                CPU_FOREACH (cpu, &s->recall.away)
                        group_cpu_leave(set->group, (unsigned) cpu);
                if (!set->handed_out)
                        group_go_on(set->group);
                counter_set_keep_current(set);
        }
        store_ship(s->store);
        LIST_FOREACH (set, &s->sets, sets)
                counter_set_write(set);
}

static void counter_set_reopen(CounterSet *set) {
        Service *s = set->service;
        Group *g = set->group;
        int error = g->error;

        group_follow_cpus(g, &s->pmus.online);
        if (set->monitor)
                (void) counter_yielder_retry(set->monitor);
        else if (g->error != 0)
                (void) group_mend(g, NULL);
        counter_set_guard(set);
        /* there may not have been room for it beside the earlier run's */
        if (g->version != set->kept || set->item.lost)
                counter_set_save(set);
        if (g->error != error)
                counter_set_changed(set);
        if (g->error != 0 || g->pinned)
                counters_retry_soon(s);
}

void counters_reopen(Service *s) {
        CounterSet *set;

        store_settle(s->store);
        LIST_FOREACH (set, &s->sets, sets)
                counter_set_reopen(set);
}

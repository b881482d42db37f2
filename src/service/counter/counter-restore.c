/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-restore.h"

#include "perf/group/group-cpu.h"
#include "perf/group/group-save.h"
#include "perf/group/group-start.h"
#include "perf/group/group-yield.h"
#include "service/bus/host-state.h"
#include "service/counter/counter-kept.h"
#include "service/counter/counter-signals.h"
#include "service/counter/counter-store.h"
#include "service/counter/counter-target.h"
#include "service/counter/counter-unpin.h"
#include "service/counter/counter-user.h"

static int restore_user(CounterSet *set, const Unpack *u) {
        _cleanup_(peer_unrefp) Peer *peer = NULL;
        CounterUser *user;
        int r = host_state_unpack_peer(set->context, u, &peer);

        if (r < 0 || !peer || counter_set_has_user(set, peer))
                return r;
        user = calloc(1, sizeof(CounterUser));
        if (!user)
                return -ENOMEM;
        if (peer->uid != set->uid)
                r = quota_charge_anyway(&set->context->quota, peer->uid, QUOTA_COUNTERS, 1,
                                        &user->charge);
        if (r < 0) {
                free(user);
                return r;
        }
        if (unpack_u64(u, "opener", 0) && !set->peer)
                set->peer = peer_ref(peer);
        user->peer = TAKE_PTR(peer);
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
                c->told_idle = unpack_u64(&element, "told-idle", false);
        }
        return LIST_EMPTY(&set->members) ? -EBADMSG : 0;
}

static int restore_charges(CounterSet *set) {
        Quota *quota = &set->context->quota;
        int r;

        r = quota_charge_anyway(quota, set->uid, QUOTA_COUNTERS, set->group->n_events,
                                &set->counter_charge);
        if (r < 0)
                return r;
        return quota_charge_anyway(quota, set->uid, QUOTA_DESCRIPTORS,
                                   group_n_descriptors(set->group), &set->descriptor_charge);
}

static int restore_group(Counters *counters, StoreRecord *record, Group **ret) {
        size_t place = 0;
        Unpack group;

        if (!unpack_next(&record->state, "group", &place, &group))
                return -EBADMSG;
        return group_load(&group, &record->state, &counters->context->pmus, record->fds,
                          record->n_fds, ret);
}

/* The set without users, charges and yielder. */
static int restore_set(Counters *counters, StoreRecord *record, const SavedSet *saved,
                       CounterSet **ret) {
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
        r = restore_group(counters, record, &group);
        if (r < 0)
                return r;
        if (group->scope != GROUP_PROCESS)
                options.cpus = &cpus;
        r = counter_set_make(counters, group, &options, ret);
        if (r < 0)
                return r;
        (*ret)->handed_out = saved->handed_out;
        (*ret)->pins = saved->pins;
        return 0;
}

static int counter_set_restore(void *userdata, StoreRecord *record) {
        _cleanup_(saved_set_done) SavedSet saved = {};
        _cleanup_(counter_set_discardp) CounterSet *set = NULL;
        CounterSetOptions role;
        int r;

        r = saved_set_read(&saved, &record->state);
        if (r >= 0)
                r = restore_set(userdata, record, &saved, &set);
        if (r >= 0)
                r = restore_counters(set, &record->state);
        if (r >= 0)
                r = restore_users(set, &record->state);
        if (r < 0)
                return r;
        /* its users were on a bus that is gone */
        if (LIST_EMPTY(&set->users) && !set->persistent && !set->configured)
                return 0;
        r = restore_charges(set);
        if (r >= 0 && !saved.monitor && !saved.persistent)
                counter_set_count_kept(set, saved.by_hold ? 0 : group_n_descriptors(set->group),
                                       saved.by_hold);
        role = (CounterSetOptions){ .priority = saved.priority,
                                    .yields_to = saved.yields_to,
                                    .seq = saved.seq };
        if (r >= 0 && saved.monitor)
                r = counter_set_enroll(set, &role);
        if (r >= 0)
                set = NULL; /* it is in counters->sets now */
        return r;
}

int counters_restore(Counters *counters) {
        Yielders *yielders = &counters->context->yielders;
        int r, k;

        yielders_gather(yielders);
        r = store_restore_each(counters->context->store, STORE_COUNTERS, "Counter",
                               counter_set_restore, counters);
        k = yielders_settle(yielders);
        return r < 0 ? r : k;
}

/* ---- going on ---- */

static int counters_gate(Counters *counters) {
        _cleanup_free_ Group **groups = NULL;
        size_t n = 0;
        CounterSet *set;

        LIST_FOREACH (set, &counters->sets, sets)
                n++;
        groups = calloc(MAX(n, 1u), sizeof(Group *));
        if (!groups)
                return -ENOMEM;
        n = 0;
        LIST_FOREACH (set, &counters->sets, sets)
                if (!set->handed_out)
                        groups[n++] = set->group;
        groups_go_on(groups, n);
        return 0;
}

int counters_go_on(Counters *counters) {
        CounterSet *set;
        int r;

        (void) counters_apply(counters);
        LIST_FOREACH (set, &counters->sets, sets)
                CPU_FOREACH (cpu, &counters->context->host->was_offline)
                        group_cpu_leave(set->group, (unsigned) cpu);
        r = counters_gate(counters);
        if (r < 0)
                return r;
        counters_unpin_soon(counters); /* holds may have ended meanwhile */
        store_gather(counters->context->store);
        LIST_FOREACH (set, &counters->sets, sets)
                counter_set_keep_current(set);
        store_ship(counters->context->store);
        LIST_FOREACH (set, &counters->sets, sets)
                counter_set_write(set);
        return 0;
}

static void counter_set_reopen(CounterSet *set) {
        Counters *counters = set->counters;
        Group *g = set->group;
        int error = g->error;

        group_follow_cpus(g, &counters->context->pmus.online);
        if (set->yielder)
                (void) counter_yielder_retry(set->yielder);
        else if (g->error != 0)
                (void) group_mend(g, NULL);
        counter_set_guard(set);
        /* there may have been no room for it beside the earlier run's descriptors */
        if (g->version != set->kept || set->item.lost)
                counter_set_save(set);
        if (g->error != error)
                counter_set_changed(set);
        if (g->error != 0 || g->pinned)
                counters_retry_soon(counters);
}

void counters_reopen(Counters *counters) {
        CounterSet *set;

        store_settle(counters->context->store);
        LIST_FOREACH (set, &counters->sets, sets)
                counter_set_reopen(set);
}

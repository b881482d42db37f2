/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-kept.h"

#include <inttypes.h>

#include "service/bus/host-state.h"
#include "service/hold/hold-scope.h"
#include "service/util/log.h"

/* ---- counting ---- */

void counter_set_count_kept(CounterSet *set, uint64_t limited, bool by_hold) {
        Counters *counters = set->counters;

        counters->n_limited -= set->kept_charge.amount;
        quota_release(&set->kept_charge);
        if (limited > 0) /* takes no memory: the set is charged to its user already */
                (void) quota_charge_anyway(&set->context->quota, set->uid, QUOTA_KEPT, limited,
                                           &set->kept_charge);
        counters->n_limited += set->kept_charge.amount;
        if (set->by_hold != by_hold)
                counters->n_by_hold += by_hold ? 1 : -(size_t) 1;
        set->by_hold = by_hold;
}

void counter_set_count_unkept(CounterSet *set, size_t n) {
        Counters *counters = set->counters;

        if (set->unkept == n)
                return;
        counters->context->host->n_unkept += n - set->unkept;
        set->unkept = n;
        counters->unkept_changed = true;
        if (counters->unkept_logged || n == 0)
                return;
        counters->unkept_logged = true;
        log_plain(
                LOG_WARNING,
                "Counters have more than %" PRIu64
                " descriptors (KeptDescriptors= in perfallocd.conf): some, the latest of the users "
                "who have most, will end when the service is restarted; persistent ones will not.",
                counters->context->config.kept_descriptors);
}

void counters_save_unkept(Counters *counters) {
        if (counters->unkept_changed)
                host_state_save(counters->context);
        counters->unkept_changed = false;
}

/* ---- the limit ---- */

static size_t counter_set_n_counters(const CounterSet *set) {
        const Counter *c;
        size_t n = 0;

        LIST_FOREACH (c, &set->members, members)
                n++;
        return n;
}

void counter_set_unkeep(CounterSet *set) {
        store_leave(&set->item);
        counter_set_count_kept(set, 0, false);
        counter_set_count_unkept(set, counter_set_n_counters(set));
}

static bool counter_set_is_of_holder(const CounterSet *set) {
        return holds_grants(set->counters->holds, set->uid, set->group->events[0].pmu);
}

static bool counters_have_room(const Counters *counters, uint64_t n) {
        return counters->n_limited + n <= counters->context->config.kept_descriptors;
}

/* The latest stored set of the user who has most. */
static CounterSet *counters_find_most(const Counters *counters) {
        CounterSet *set, *found = NULL;
        uint64_t most = 0;

        LIST_FOREACH (set, &counters->sets, sets) {
                uint64_t kept = quota_used(&counters->context->quota, set->uid, QUOTA_KEPT);

                if (set->kept_charge.amount == 0 || kept < most)
                        continue;
                if (kept > most || counter_set_number(set) > counter_set_number(found))
                        found = set;
                most = kept;
        }
        return found;
}

/* Within an equal share of all users it has a right to room, and as the limit is exceeded someone
 * else has more than a share. */
static bool counter_set_make_room(const CounterSet *set, uint64_t n) {
        Counters *counters = set->counters;
        Quota *quota = &counters->context->quota;
        uint64_t kept = quota_used(quota, set->uid, QUOTA_KEPT);
        size_t n_users = quota_n_users(quota, QUOTA_KEPT) + (kept == 0);

        if (kept + n > counters->context->config.kept_descriptors / n_users)
                return false;
        while (!counters_have_room(counters, n)) {
                CounterSet *other = counters_find_most(counters);

                if (counter_set_is_of_holder(other))
                        counter_set_count_kept(other, 0, true);
                else
                        counter_set_unkeep(other);
        }
        return true;
}

/* systemd compares each new descriptor with all that it stores, so their number is limited. */
bool counter_set_may_be_kept(CounterSet *set) {
        uint64_t n = group_n_descriptors(set->group);

        if (set->yielder || set->persistent)
                counter_set_count_kept(set, 0, false);
        else if (set->kept_charge.amount > 0 || counters_have_room(set->counters, n))
                counter_set_count_kept(set, n, false);
        else if (counter_set_is_of_holder(set))
                counter_set_count_kept(set, 0, true);
        else if (counter_set_make_room(set, n))
                counter_set_count_kept(set, n, false);
        else
                return false;
        return true;
}

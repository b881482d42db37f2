/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attach-sets.h"

#include "perf/group/group-target.h"
#include "perf/process/tree.h"
#include "service/counter/counter-end.h"
#include "service/counter/counter-store.h"
#include "service/counter/counter-target.h"
#include "service/hold/hold-scope.h"

#define REAP_AT_ONCE 8u /* targets that are looked at before each new one */

/* ---- opening and undoing ---- */

/* The index of the target under way in the set; n_targets if it is not there. */
static size_t attach_sets_place(const AttachJob *a, const CounterSet *set) {
        size_t i = 0;

        while (i < set->group->n_targets && set->group->targets[i].pending != a)
                i++;
        return i;
}

static void attach_sets_undo(AttachJob *a) {
        const AttachSets *all = a->what;

        for (size_t i = 0; i < all->n_sets; i++) {
                size_t place = attach_sets_place(a, all->sets[i]);

                if (place < all->sets[i]->group->n_targets)
                        counter_set_detach(all->sets[i], place);
        }
}

static void attach_sets_accept(AttachJob *a) {
        const AttachSets *all = a->what;

        for (size_t i = 0; i < all->n_sets; i++) {
                size_t place = attach_sets_place(a, all->sets[i]);

                if (place < all->sets[i]->group->n_targets)
                        counter_set_accept(all->sets[i], place);
        }
}

/* Nothing of it is open yet. */
static bool set_may_be_pinned_anew(const CounterSet *set) {
        return set->pins && set->group->n_targets == 0;
}

int attach_sets_check_descendants(const CounterSet *set, Refusal *why) {
        if (!set->group->pinned || set_may_be_pinned_anew(set))
                return 0;
        return refuse(why, REFUSAL_INVALID_ARGS,
                      "option 'descendants': '%s' is pinned%s, and pinned events are not inherited",
                      set->group->events[0].name,
                      set->pins ? ", because its user held the counters when it was opened" : "");
}

/* A holder's counter keeps what the hold was promised, unless it is inherited. */
static void set_pin(CounterSet *set, bool descendants) {
        Group *g = set->group;

        if (!set_may_be_pinned_anew(set) || g->pinned == !descendants)
                return;
        g->pinned = !descendants;
        counter_set_save(set);
        if (g->pinned)
                counters_retry_soon(set->counters);
}

/* Whether it may be opened, looked at once more: an exclusive hold may have been granted since the
 * call was. */
static int set_admit(const AttachJob *a, CounterSet *set, Refusal *why) {
        const Group *g = set->group;
        int r = holds_admit_opening(set->counters->holds, set->uid, g->events, g->n_events, NULL,
                                    why);

        if (r != 0)
                return r;
        set_pin(set, a->descendants);
        return a->descendants ? attach_sets_check_descendants(set, why) : 0;
}

static int set_add(const AttachJob *a, CounterSet *set, const pid_t *tids, const pid_t *pids,
                   size_t n_tids, Refusal *why) {
        const GroupTarget target = {
                .pid = a->pid,
                .process = a->process,
                .descendants = a->descendants,
                .pending = a,
                .by_opener = a->peer == set->peer,
                .guarded = attach_job_is_guarded(a),
                .uid = attach_job_target_uid(a),
                .gid = a->facts.gid[0],
        };
        int r = set_admit(a, set, why);

        if (r != 0)
                return r;
        r = counter_set_attach(set, &target, tids, pids, n_tids, why);
        if (r <= 0)
                return r;
        counter_set_reap(set, set->group->n_targets); /* what ended ones were charged may do */
        return counter_set_attach(set, &target, tids, pids, n_tids, why);
}

static int attach_sets_open(AttachJob *a, const pid_t *tids, const pid_t *pids, size_t n_tids,
                            Refusal *why) {
        const AttachSets *all = a->what;
        int r = attach_job_share(a);

        for (size_t i = 0; i < all->n_sets && r == 0; i++)
                r = set_add(a, all->sets[i], tids, pids, n_tids, why);
        if (r == 0) {
                counters_end_before(all->sets[0]->counters, all->sets, all->n_sets);
                r = counter_sets_open(all->sets, all->n_sets, why);
        }
        for (size_t i = 0; i < all->n_sets && r == 0; i++)
                if (!counter_set_is_closed(all->sets[i]) &&
                    !group_is_open_at(all->sets[i]->group, attach_sets_place(a, all->sets[i])))
                        r = attach_job_refuse_ended(a, why);
        if (r != 0)
                attach_sets_undo(a);
        return r;
}

/* ---- who is attached already ---- */

static int refuse_attached(const CounterSet *set, pid_t pid, const char *relation, Refusal *why) {
        return refuse(why, REFUSAL_ALREADY_ATTACHED, "process %d%s is already attached to '%s'",
                      (int) pid, relation, set->group->events[0].name);
}

static bool is_tree(const void *userdata, pid_t pid) {
        const Group *g = userdata;
        size_t place = group_find_target(g, pid);

        return place < g->n_targets && g->targets[place].descendants;
}

static int set_check(const CounterSet *set, pid_t pid, Refusal *why) {
        const Group *g = set->group;

        if (group_find_target(g, pid) < g->n_targets)
                return refuse_attached(set, pid, "", why);
        if (g->n_targets > 0 && tree_descends(pid, is_tree, g))
                return refuse_attached(set, pid, ", as a descendant of an attached process,", why);
        return 0;
}

static int set_check_tree(const CounterSet *set, const ReaderTree *tree, Refusal *why) {
        const Group *g = set->group;

        for (size_t i = 0; i < tree->n_processes; i++)
                if (group_find_target(g, tree->processes[i].pid) < g->n_targets)
                        return refuse_attached(set, tree->processes[i].pid, ", a descendant,", why);
        return 0;
}

static int attach_sets_check(AttachJob *a, const ReaderTree *tree, Refusal *why) {
        const AttachSets *all = a->what;
        int r = 0;

        for (size_t i = 0; i < all->n_sets && r == 0; i++) {
                counter_set_reap(all->sets[i], REAP_AT_ONCE);
                r = set_check(all->sets[i], a->pid, why);
                if (r == 0 && tree)
                        r = set_check_tree(all->sets[i], tree, why);
        }
        return r;
}

const AttachKind attach_sets_kind = {
        .check = attach_sets_check,
        .open = attach_sets_open,
        .undo = attach_sets_undo,
        .accept = attach_sets_accept,
};

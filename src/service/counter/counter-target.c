/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "counter-target.h"

#include "perf/group/group-target.h"
#include "service/auth/trace-rule.h"
#include "service/counter/counter-store.h"
#include "service/counter/counter-user.h"
#include "service/util/log.h"

/* Less is never refused. More is charged before it is opened. */
static int counter_set_recharge(CounterSet *set, Refusal *why) {
        return quota_resize(&set->descriptor_charge, group_n_descriptors(set->group), why);
}

int counter_set_attach(CounterSet *set, const GroupTarget *target, const pid_t *tids,
                       const pid_t *pids, size_t n_tids, Refusal *why) {
        Group *g = set->group;
        int r;

        r = group_attach(g, target, tids, pids, n_tids);
        if (r < 0)
                return r;
        r = counter_set_recharge(set, why);
        if (r != 0)
                counter_set_detach(set, g->n_targets - 1);
        return r;
}

void counter_set_accept(CounterSet *set, size_t target) {
        group_accept(set->group, target);
        counter_set_save_targets(set);
}

void counter_set_detach(CounterSet *set, size_t target) {
        /* the index of the target under inspection may change */
        set->guard = reader_job_cancel(set->guard);
        group_detach(set->group, target);
        (void) counter_set_recharge(set, NULL);
        counter_set_save_targets(set);
        counter_set_guard(set);
}

void counter_set_reap(CounterSet *set, size_t n) {
        uint64_t version = set->group->version;

        group_reap(set->group, n);
        if (set->group->version == version)
                return;
        set->guard = reader_job_cancel(set->guard);
        (void) counter_set_recharge(set, NULL);
        counter_set_save_targets(set);
        counter_set_guard(set);
}

/* ---- targets that were opened anew ---- */

static size_t counter_set_unguarded(const CounterSet *set) {
        const Group *g = set->group;
        size_t i = 0;

        while (i < g->n_targets && g->targets[i].pending != g)
                i++;
        return i;
}

static const char *target_untraceable(const GroupTarget *t, const ProcessFacts *facts) {
        if (trace_rule_is_void(TRACE_RULE_SUID_DUMPABLE))
                return "fs.suid_dumpable is 1";
        return process_untraceable(facts, t->uid, &t->gid, 1);
}

static void counter_set_guarded(void *userdata, int r, const ProcessFacts *facts, bool neighbour,
                                const Refusal *why) {
        CounterSet *set = userdata;
        size_t place = counter_set_unguarded(set);
        const GroupTarget *t = &set->group->targets[place];
        const char *words;

        set->guard = NULL;
        if (r < 0)
                return; /* the target stays, and does not count */
        words = r == REFUSAL_NO_SUCH_PROCESS ? NULL
                : r > 0                      ? why->text
                                             : target_untraceable(t, facts);
        if (words) {
                log_plain(LOG_NOTICE,
                          "Process %d is not counted any more by a counter of uid %u: %s.",
                          (int) t->pid, (unsigned) set->uid, words);
                counter_set_detach(set, place);
                return;
        }
        group_accept(set->group, place);
        counter_set_save(set);
        counter_set_guard(set);
}

void counter_set_guard(CounterSet *set) {
        size_t place = counter_set_unguarded(set);

        if (set->guard || set->group->yielded || place == set->group->n_targets)
                return;
        (void) reader_inspect(set->context->reader, set->group->targets[place].process->fd, -1,
                              counter_set_guarded, set, &set->guard);
}

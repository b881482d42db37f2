/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "detach-call.h"

#include "perf/group/group-target.h"
#include "perf/process/process.h"
#include "perf/process/procfs.h"
#include "service/auth/auth.h"
#include "service/counter/attach-call.h"
#include "service/counter/counter-target.h"
#include "service/util/reply.h"

/* ---- numbers of another PID namespace ---- */

/* Which target it is to a caller in another PID namespace: they know the living ones by numbers of
 * their own. n_targets: none. */
static int find_target_of_theirs(const Group *g, const Peer *peer, pid_t number, size_t *ret) {
        int depth = process_depth(peer->pidfd);

        *ret = g->n_targets;
        for (size_t i = 0; i < g->n_targets && depth > 0; i++) {
                pid_t theirs;
                int r = process_number_at(g->targets[i].pidfd, (unsigned) depth, &theirs);

                if (r < 0)
                        return r;
                if (theirs == number) {
                        *ret = i;
                        return 0;
                }
        }
        return MIN(depth, 0);
}

static int refuse_unattached(const Counter *c, pid_t pid, Refusal *why) {
        return refuse(why, REFUSAL_NOT_ATTACHED, "process %d is not attached to %s", (int) pid,
                      c->object.path);
}

static int counter_detach_theirs(Counter *c, pid_t number, const Peer *peer, Refusal *why) {
        const Group *g = c->set->group;
        size_t place;
        int r = find_target_of_theirs(g, peer, number, &place);

        if (r != 0)
                return r;
        if (place == g->n_targets || group_target_is_awaited(g, place))
                return refuse_unattached(c, number, why);
        counter_set_detach(c->set, place);
        return 0;
}

/* ---- ours ---- */

/* Descendants of an ended target may still be counted. False: there is no such target. */
static bool counter_detach_ended(CounterSet *set, pid_t pid) {
        const Group *g = set->group;

        for (size_t place = 0; place < g->n_targets; place++)
                if (g->targets[place].pid == pid && g->targets[place].descendants &&
                    !group_target_is_awaited(g, place)) {
                        counter_set_detach(set, place);
                        return true;
                }
        return false;
}

/* Where /proc hides processes, whether there is one of that number is not told. */
static int counter_detach_unattached(Counter *c, pid_t pid, const Peer *peer, Refusal *why) {
        bool hides = !peer->root && procfs_hides();
        _cleanup_close_ int pidfd = -1;
        int r = hides ? REFUSAL_NO_SUCH_PROCESS : process_open(pid, &pidfd, why);

        if (r == REFUSAL_NO_SUCH_PROCESS && counter_detach_ended(c->set, pid))
                return 0;
        return r == 0 || hides ? refuse_unattached(c, pid, why) : r;
}

static int counter_detach_ours(Counter *c, pid_t pid, const Peer *peer, Refusal *why) {
        const Group *g = c->set->group;
        size_t place = group_find_target(g, pid);

        if (place == g->n_targets || group_target_is_awaited(g, place))
                return counter_detach_unattached(c, pid, peer, why);
        counter_set_detach(c->set, place);
        return 0;
}

static int counter_detach(Counter *c, uint32_t number, const Peer *peer, Refusal *why) {
        bool theirs = number > 0 && !peer->numbers_like_us;
        pid_t pid;
        int r;

        if (c->set->group->scope != GROUP_PROCESS)
                return attach_call_refuse_scope(c, why);
        r = attach_call_read_pid(number, peer, &pid, why);
        if (r != 0)
                return r;
        return theirs ? counter_detach_theirs(c, pid, peer, why)
                      : counter_detach_ours(c, pid, peer, why);
}

int detach_call_handle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Counter *c = userdata;
        Counters *counters = c->set->counters;
        Peer *peer = peers_sender(counters->context->peers, m);
        Refusal why = REFUSAL_NULL;
        uint32_t pid;
        int r;

        r = auth_check_owner(counters->context->auth, peer, m, c->set->uid, c->object.path, &why);
        if (r == 0) {
                r = sd_bus_message_rewind(m, true);
                if (r >= 0)
                        r = sd_bus_message_read_basic(m, 'u', &pid);
                if (r >= 0)
                        r = counter_detach(c, pid, peer, &why);
                store_settle(counters->context->store);
        }
        return r == 0 ? sd_bus_reply_method_return(m, NULL) : reply_failure(r, &why, error);
}

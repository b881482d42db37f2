/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "detach-call.h"

#include "perf/group/group-target.h"
#include "perf/process/process.h"
#include "perf/process/procfs.h"
#include "perf/process/tree.h"
#include "service/auth/auth.h"
#include "service/counter/attach-call.h"
#include "service/counter/counter-target.h"
#include "service/util/reply.h"

/* ---- numbers of another PID namespace ---- */

typedef struct InitSearch {
        unsigned depth;
        pid_t *found;
} InitSearch;

static bool is_init(const void *userdata, pid_t pid) {
        const InitSearch *search = userdata;
        _cleanup_close_ int pidfd = -1;
        pid_t number = 0;

        if (process_open(pid, &pidfd, NULL) != 0 ||
            process_number_at(pidfd, search->depth, &number) < 0 || number != 1)
                return false;
        *search->found = pid;
        return true;
}

/* By our number, process 1 of the PID namespace of that depth that the process is in: it stands for
 * the namespace, which only privileged processes may look at. 0: unknown, as of a process that was
 * put into the namespace from outside (setns(2)). */
static pid_t namespace_init(pid_t pid, unsigned depth) {
        pid_t found = 0;
        const InitSearch search = { depth, &found };

        if (!is_init(&search, pid))
                (void) tree_descends(pid, is_init, &search);
        return found;
}

typedef struct Caller {
        unsigned depth;
        pid_t init; /* 0: unknown */
} Caller;

/* 1: the caller may know the target by that number. */
static int target_is_of_caller(const GroupTarget *t, const Caller *caller, pid_t number) {
        pid_t theirs, init;
        int r = process_number_at(t->process->fd, caller->depth, &theirs);

        if (r < 0 || theirs != number)
                return r;
        init = caller->init > 0 ? namespace_init(t->pid, caller->depth) : 0;
        return init == 0 || init == caller->init;
}

static int refuse_ambiguous(pid_t number, Refusal *why) {
        return refuse(why, REFUSAL_INVALID_PROCESS,
                      "pid: %d is the number of several attached processes, in different PID "
                      "namespaces, and the caller's cannot be told from the others; detach it from "
                      "the PID namespace of the service",
                      (int) number);
}

/* Which target it is to a caller in another PID namespace. n_targets: none that lives. */
static int find_target_of_theirs(const Group *g, const Peer *peer, pid_t number, size_t *ret,
                                 Refusal *why) {
        int depth = process_depth(peer->pidfd);
        const Caller caller = { (unsigned) MAX(depth, 0),
                                depth > 0 ? namespace_init(peer->pid, (unsigned) depth) : 0 };

        *ret = g->n_targets;
        for (size_t i = 0; i < g->n_targets && depth > 0; i++) {
                int r = group_target_is_awaited(g, i)
                                ? 0
                                : target_is_of_caller(&g->targets[i], &caller, number);

                if (r < 0)
                        return r;
                if (r > 0 && *ret < g->n_targets)
                        return refuse_ambiguous(number, why);
                if (r > 0)
                        *ret = i;
        }
        return MIN(depth, 0);
}

static int refuse_unattached(const Counter *c, pid_t pid, Refusal *why) {
        return refuse(why, REFUSAL_NOT_ATTACHED, "process %d is not attached to %s", (int) pid,
                      c->object.path);
}

static int counter_detach_theirs(Counter *c, pid_t number, const Peer *peer, Refusal *why) {
        Group *g = c->set->group;
        size_t place;
        int r = find_target_of_theirs(g, peer, number, &place, why);

        if (r != 0)
                return r;
        if (place == g->n_targets)
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

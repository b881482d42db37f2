/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace-rule.h"

#include "perf/process/procfs.h"

#include <fcntl.h>

bool trace_rule_is_void(const char *path) {
        char c = 0;
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

        return fd < 0 || read(fd, &c, 1) != 1 || (c != '0' && c != '2');
}

TraceClaim trace_rule_claim(const Peer *peer, pid_t pid) {
        return pid == peer->pid && peer->pidfd >= 0 && process_exists(peer->pidfd) ? TRACE_ITSELF
                                                                                   : TRACE_UNPROVEN;
}

TraceClaim trace_rule_claim_proof(const Peer *peer, pid_t pid, bool proven) {
        if (trace_rule_claim(peer, pid) == TRACE_ITSELF)
                return TRACE_ITSELF;
        return proven ? TRACE_PROVEN : TRACE_DISPROVED;
}

static const char *claim_lacks(TraceClaim claim, bool neighbour) {
        if (claim == TRACE_UNPROVEN)
                return "no proof was sent: option 'procfd', a descriptor of its /proc/PID/maps "
                       "that the caller has opened";
        if (claim == TRACE_DISPROVED)
                return "option 'procfd' is not its maps, auxv or environ, opened in the host's "
                       "/proc";
        if (claim == TRACE_PROVEN && !neighbour)
                return "the caller is in another PID or user namespace";
        return NULL;
}

const char *trace_rule_denies(const Peer *peer, TraceClaim claim, bool neighbour,
                              const ProcessFacts *facts) {
        if (peer->root)
                return NULL;
        if (trace_rule_is_void(TRACE_RULE_SUID_DUMPABLE))
                return "fs.suid_dumpable is 1 or cannot be read, and it may become privileged "
                       "later";
        return process_untraceable(facts, peer->uid, peer->gids, peer->n_gids)
                       ?: claim_lacks(claim, neighbour);
}

bool trace_rule_hides(const Peer *peer, const ProcessFacts *facts) {
        return !peer->root && procfs_hides() &&
               process_untraceable(facts, peer->uid, peer->gids, peer->n_gids);
}

int trace_rule_check_number(const Peer *peer, pid_t pid, Refusal *why) {
        if (peer->numbers_like_us)
                return 0;
        return refuse(why, REFUSAL_INVALID_ARGS,
                      "pid: %d may mean another process to the caller than to the service (the "
                      "caller has ended, or is in another PID namespace); name the process by "
                      "option 'pidfd'",
                      (int) pid);
}

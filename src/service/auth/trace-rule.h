/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who may count which process: what is known of the target, see process_untraceable(), and what the
 * caller has shown. A uid is not enough, for callers live in sandboxes and containers: a process
 * other than the caller's own takes a proof (perf/process/proof.h), and a caller from the service's
 * own namespaces. Anything else asks polkit for count-other. Root may count everybody.
 */

#include "perf/process/process.h"
#include "service/bus/peer.h"

#define TRACE_RULE_SUID_DUMPABLE "/proc/sys/fs/suid_dumpable"

/* What the caller has shown of its right to the target. */
typedef enum TraceClaim {
        TRACE_UNPROVEN,  /* nothing */
        TRACE_DISPROVED, /* a descriptor that is no proof */
        TRACE_PROVEN,
        TRACE_ITSELF, /* the target is the calling process */
} TraceClaim;

/* TRACE_ITSELF where the peer's process has that number, else TRACE_UNPROVEN. */
TraceClaim trace_rule_claim(const Peer *peer, pid_t pid);

/* The same with a proof that was looked at: whether it holds that process. */
TraceClaim trace_rule_claim_proof(const Peer *peer, pid_t pid, bool proven);

/* NULL when the peer may count the process with these facts, else in words what is in the way.
 * neighbour: the peer's process is in the service's namespaces, which TRACE_PROVEN needs. */
const char *trace_rule_denies(const Peer *peer, TraceClaim claim, bool neighbour,
                              const ProcessFacts *facts);

/* A number means another process in another PID namespace: REFUSAL_INVALID_ARGS where the peer is
 * in one. */
int trace_rule_check_number(const Peer *peer, pid_t pid, Refusal *why);

/* Whether the kernel leaves events on a process that executes a setuid program: so it does with
 * fs.suid_dumpable=1 (proc(5)), and there nobody may count by this rule. Not to know means yes.
 * path is TRACE_RULE_SUID_DUMPABLE. */
bool trace_rule_is_void(const char *path);

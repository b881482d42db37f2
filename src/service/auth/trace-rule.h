/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which processes a caller may count. It depends on the target (process_untraceable()) and on what
 * the caller has shown. A uid is not enough, because callers live in sandboxes and containers: a
 * process other than the caller's own needs a proof (perf/process/proof.h) from a caller in the
 * service's namespaces. Any other process needs count-other. Root may count every process.
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

/* TRACE_ITSELF if the peer's process has that pid, else TRACE_UNPROVEN. */
TraceClaim trace_rule_claim(const Peer *peer, pid_t pid);

/* The same for a caller that sent a proof. proven: the proof holds that process. */
TraceClaim trace_rule_claim_proof(const Peer *peer, pid_t pid, bool proven);

/* NULL if the peer may count the process with these facts, else the reason. neighbour: the peer's
 * process is in the service's namespaces, which TRACE_PROVEN needs. */
const char *trace_rule_denies(const Peer *peer, TraceClaim claim, bool neighbour,
                              const ProcessFacts *facts);

/* Whether a denial must not tell the peer that the process exists: the host's /proc hides it from
 * them (proc(5), hidepid=). It is refused by procfs_refuse_unseen(). */
bool trace_rule_hides(const Peer *peer, const ProcessFacts *facts);

/* A pid of another PID namespace means another process: REFUSAL_INVALID_ARGS if the peer is in
 * one. */
int trace_rule_check_number(const Peer *peer, pid_t pid, Refusal *why);

/* Whether the rule does not hold: with fs.suid_dumpable=1 (proc(5)) the kernel keeps events on a
 * process that executes a setuid program. A file that cannot be read means yes. path is
 * TRACE_RULE_SUID_DUMPABLE. */
bool trace_rule_is_void(const char *path);

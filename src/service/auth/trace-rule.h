/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which processes a caller may count. A caller may count a process that they could ptrace-read, see
 * process_untraceable(). Any other process needs count-other. Root may count every process.
 */

#include "perf/process/process.h"
#include "service/bus/peer.h"

#define TRACE_RULE_SUID_DUMPABLE "/proc/sys/fs/suid_dumpable"

/* NULL if the peer may count the process with these facts, else the reason. */
const char *trace_rule_denies(const Peer *peer, const ProcessFacts *facts);

/* Whether the rule does not hold: with fs.suid_dumpable=1 (proc(5)) the kernel keeps events on a
 * process that executes a setuid program. A file that cannot be read means yes. path is
 * TRACE_RULE_SUID_DUMPABLE. */
bool trace_rule_is_void(const char *path);

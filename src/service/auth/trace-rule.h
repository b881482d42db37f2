/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who may count which process. A caller may count a process that he could ptrace-read, see
 * process_untraceable(); anything else asks polkit for count-other. Root may count everybody.
 */

#include "perf/process/process.h"
#include "service/bus/peer.h"

#define TRACE_RULE_SUID_DUMPABLE "/proc/sys/fs/suid_dumpable"

/* NULL when the peer may count the process with these facts, else in words what is in the way. */
const char *trace_rule_denies(const Peer *peer, const ProcessFacts *facts);

/* Whether the kernel leaves events on a process that executes a setuid program: so it does with
 * fs.suid_dumpable=1 (proc(5)), and there nobody may count by this rule. Not to know means yes.
 * path is TRACE_RULE_SUID_DUMPABLE. */
bool trace_rule_is_void(const char *path);

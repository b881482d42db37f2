/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Proof by descriptor: the kernel opens /proc/PID/maps, auxv and environ only to who may
 * ptrace-read the process (proc(5)), by the credentials, LSM and Landlock domain of the opener. An
 * open descriptor shows that right, and names the process without a number. It stays valid while
 * the process lives, across execve(2) too, as a perf event does.
 *
 * Descriptors come from strangers, and nothing here waits for what is behind them: a FUSE server
 * may never answer, and a read of maps waits for whoever reads the same open file.
 *
 * host is the directory of the host's procfs, PROOF_HOST but in tests. To read there needs
 * CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, so the reader does it (service/sibling/reader.h), and the
 * process must not be a multi-threaded one: an inotify instance is kept.
 */

#include "core/refusal.h"

#define PROOF_HOST "/proc/1/root/proc" /* the service's unit may have a procfs of its own */

/* Holds the process that the descriptor is of. REFUSAL_BAD_DESCRIPTOR: it is of none, or proves
 * nothing; REFUSAL_NO_SUCH_PROCESS: its process has ended. */
int proof_open(int procfd, const char *host, int *ret_pidfd, Refusal *why);

/* The same for the process behind pidfd: REFUSAL_BAD_DESCRIPTOR also when it is of another one. */
int proof_check(int procfd, const char *host, int pidfd, Refusal *why);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The client that a program was started by, asked for proofs (perf/process/proof.h): it opens
 * /proc/PID/maps with its own credentials, LSM label and Landlock domain. The programs have the
 * client's domain or a narrower one.
 *
 * Messages on the socket, a SOCK_SEQPACKET one: the number of a process, an int32_t, to the client;
 * and the same one back, with the descriptor, or without.
 */

#include "core/util.h"

#define PROVER_WAIT_MSEC 1000

/* Whether the descriptor can be such a socket. */
bool prover_is(int fd);

/* Whether the client may trace the process that pidfd holds, which has this number. False also: it
 * has gone, or does not answer in PROVER_WAIT_MSEC. */
bool prover_proves(int prover, int pidfd, pid_t pid);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * pmdaperfevent of PCP: while anybody has a lock on the first byte of its file "perflock", which it
 * looks at every 100 ms, it disables its events (pmdaperfevent(1), perfalloc(1) of PCP).
 *
 * The lock is one of an open file description (F_OFD_SETLK, fcntl(2)): to PCP it is like any other,
 * but it belongs to a descriptor, so it is not lost when the process closes another one of the same
 * file.
 */

#include "yield/bridge.h"

#define PCP_CONF_PATH "/etc/pcp.conf"

/* Where PCP is configured to have the lock, by PCP_PMDAS_DIR in the file conf. *ret is NULL where
 * there is no PCP. -ENOMEM. */
int pcp_lock_find(const char *conf, char **ret);

int pcp_lock_new(const BridgeHost *host, const char *path, uint64_t grace_usec, Bridge **ret);

/* Who else has a read lock there, which makes PCP's monitor yield: its pid, -1 when that cannot be
 * known, 0: nobody. b is one of pcp_lock_new(). */
pid_t pcp_lock_holder(Bridge *b);

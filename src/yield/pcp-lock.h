/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PCP's pmdaperfevent: it disables its events while any process has a lock on the first byte of its
 * file "perflock", which it checks every 100 ms (pmdaperfevent(1), perfalloc(1) of PCP).
 *
 * The bridge takes an open file description lock (F_OFD_SETLK, fcntl(2)). PCP sees no difference,
 * and the lock is not lost when the process closes another descriptor of the file.
 */

#include "yield/bridge.h"

#define PCP_CONF_PATH "/etc/pcp.conf"

/* The path of the lock, by PCP_PMDAS_DIR in PCP's configuration file conf. *ret is NULL: there is
 * no PCP. -ENOMEM. */
int pcp_lock_find(const char *conf, char **ret);

int pcp_lock_new(const BridgeHost *host, const char *path, uint64_t grace_usec, Bridge **ret);

/* The pid of another process that has a read lock there, which makes PCP's monitor yield; -1: its
 * pid is unknown; 0: none. b is one of pcp_lock_new(). */
pid_t pcp_lock_holder(Bridge *b);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sockets that clients pass to the service. Closing one may take as long as its owner likes
 * (fd-copies.h). So each is replaced by /dev/null before anybody sees it, but for an AF_UNIX one of
 * type SOCK_SEQPACKET in which nothing is queued: that is what Broker takes as a prover.
 *
 * libsystemd reads messages by recvmsg(2), which this unit defines anew: a message may carry
 * descriptors that none of its arguments refers to, and those no function of libsystemd tells of.
 */

#include <systemd/sd-bus.h>

/* From now on, for the descriptors that this connection receives. For the service's only one. */
int passed_sockets_replace(sd_bus *bus);

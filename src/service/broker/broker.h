/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Brokers: one for each program that was started under perfalloc(1) or perfallocctl(1), and all
 * that it starts. A broker has the seccomp listener of these, what its user was authorized for, and
 * a worker (broker/worker.h) that asks for each perf_event_open(2).
 *
 * A broker lasts as long as a task has the filter, whatever becomes of the client that made it, and
 * over restarts of the service. A worker that ends too early is replaced, and finds the call that
 * it was at in the listener's page. The end of a broker closes its listener: calls fail with ENOSYS
 * from then on.
 */

#include "service/broker/broker-object.h"
#include "service/bus/peer.h"

/* The peer was authorized for the actions. Descriptors are duplicated; prover
 * (broker/prover.h) may be -1.
 * As brokers_check(). */
int broker_new(Brokers *brokers, const Peer *peer, int listener, int prover, unsigned actions,
               Refusal *why);

/* REFUSAL_BROKER_BUSY: the listener has a broker. REFUSAL_LIMITS_EXCEEDED: the user, or everybody
 * together, has too many already. */
int brokers_check(Brokers *brokers, uid_t uid, int listener, Refusal *why);

void brokers_done(Brokers *brokers); /* the store keeps them */

/* Brokers of an earlier run. */
int brokers_restore(Brokers *brokers);

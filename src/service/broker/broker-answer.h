/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Whether a program under a broker gets an event: by the same rules as OpenEvent, for the broker's
 * user, if the calling task has no other rights than that user. Everything else is for the kernel
 * to answer (BROKER_PASS), but for what the program must be told in another way: that the service
 * knows a bit or a size no better than an older kernel, and that another user has reserved the
 * counters.
 */

#include "broker/broker-wire.h"
#include "service/broker/broker-object.h"

/* The event, disabled, or -1; ret says what to do with it. */
int broker_answer(const Broker *b, const BrokerRequest *q, size_t n_attr, int target, int group,
                  BrokerReply *ret);

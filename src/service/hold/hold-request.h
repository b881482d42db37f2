/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The arguments of Hold and HoldUnattended, checked against this machine.
 */

#include <systemd/sd-bus.h>

#include "service/pmu/scope-request.h"

typedef struct HoldRequest HoldRequest;

#define HOLD_REASON_MAX 1024u /* bytes */
#define HOLD_YIELD_USEC (500 * USEC_PER_MSEC)

struct HoldRequest {
        char *reason;
        ScopeRequest what;
        uint32_t counters; /* 0: all */
        bool exclusive, best_effort, unattended;
        uint64_t wait_usec, yield_usec;
        uint64_t lifetime_usec; /* UINT64_MAX: until it is released */
        uint64_t number;        /* of the hold, from serial_next(); 0: the next one */
        uint64_t age_usec;      /* of the call, from whose arrival all these but yield_usec count */
};

#define HOLD_REQUEST_NULL ((HoldRequest){})

/* Refuses everything that is wrong with the arguments alone. REFUSAL_INVALID_ARGS names it. */
int hold_request_read(const PmuTable *pmus, sd_bus_message *m, bool unattended, HoldRequest *ret,
                      Refusal *why);
void hold_request_done(HoldRequest *q);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The arguments of Hold and HoldUnattended, checked against this machine.
 */

#include <systemd/sd-bus.h>

#include "service/hold/hold-tie.h"
#include "service/pmu/scope-request.h"

typedef struct HoldRequest HoldRequest;

#define HOLD_REASON_MAX 1024u /* bytes */
#define HOLD_TAG_MAX    128u
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

        /* on behalf of others */
        bool on_behalf; /* one of these options is given */
        uid_t uid;      /* whose hold it is; HOLD_UID_CALLER: the caller's */
        char *tag;      /* the maker's name for it; empty: none */
        HoldTie tie;
};

#define HOLD_UID_CALLER   ((uid_t) -1)
#define HOLD_REQUEST_NULL ((HoldRequest){ .uid = HOLD_UID_CALLER, .tie = HOLD_TIE_NULL })

/* Refuses everything that is wrong with the arguments alone. REFUSAL_INVALID_ARGS names it, also
 * REFUSAL_BAD_DESCRIPTOR and REFUSAL_NO_SUCH_PROCESS (hold-tie.h). REFUSAL_NOT_SUPPORTED: a number
 * of counters or an exclusive hold is asked for where there is nothing to hold. */
int hold_request_read(const PmuTable *pmus, sd_bus_message *m, bool unattended, HoldRequest *ret,
                      Refusal *why);

/* Whether both ask for the same counters in the same way, for the same user. */
bool hold_request_equal(const HoldRequest *a, const HoldRequest *b);
void hold_request_done(HoldRequest *q);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What holders were promised beside a hold that is measured, and what they have open of it; its own
 * holder too, where it is measured again.
 *
 * A holder is a user with confirmed holds: of root's programs, which are many, those that descend
 * from the process that took the hold. What such a user had open before counts as anybody's, and
 * so does what they have open elsewhere than in their holds' scopes.
 *
 * What the service opened on CPUs is known. Of what holders opened by themselves (or what follows a
 * process) a scan tells how many descriptors there are, and how old; not on which CPUs they count.
 */

#include "core/promise.h"
#include "perf/process/users.h"
#include "service/hold/hold-object.h"

typedef struct HoldClaims HoldClaims;

/* On one slot. */
struct HoldClaims {
        Promise promise;
        const Hold *firsts[PROMISE_HOLDERS_MAX]; /* each holder's oldest hold there */
        CounterUse known;                        /* of the service's counters there, monitors too */
        unsigned others; /* that may be open there of those who have no hold; UINT_MAX: any */
};

/* What the PMU has without what the kernel keeps of it now. */
Shape hold_usable(const Pmu *pmu);

/* Without what a scan would tell, while the hold is measured. */
void hold_claims_read(const Hold *h, const Pmu *pmu, unsigned cpu, HoldClaims *ret);

/* Adds what a scan has found. */
void hold_claims_add_users(HoldClaims *c, const User *users, size_t n_users);

/* Whether anybody else has a confirmed hold on a slot of this one's scope. */
bool hold_has_company(const Hold *h);

/* Whether an event of that user and process, the oldest of which has this order, was opened within
 * the user's own confirmed hold that overlaps this one. */
bool hold_is_holders(const Hold *h, uid_t uid, pid_t pid, uint64_t order);

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which counters a client asks for: the options `pmus` and `cpus` of holds and monitors, checked
 * against this machine.
 */

#include "core/pack.h"
#include "core/scope.h"
#include "perf/pmu/pmu.h"
#include "service/auth/asked.h"

typedef struct ScopeRequest ScopeRequest;

struct ScopeRequest {
        Scope scope;
        char **pmus; /* names, as properties show them */
        char *cpus;  /* a list, as properties show it */
};

#define SCOPE_REQUEST_NULL ((ScopeRequest){})

/* names NULL: every core PMU. cpus NULL: all CPUs, also those that come online later.
 * REFUSAL_INVALID_ARGS names the option and the error. */
int scope_request_read(const PmuTable *pmus, char *const *names, const char *cpus,
                       ScopeRequest *ret, Refusal *why);
void scope_request_done(ScopeRequest *q);

/* PMUs and CPUs, for polkit. */
void scope_request_ask(const ScopeRequest *q, Asked *ret);

/* For restarts of the service. PMUs and CPUs that are gone are left out. */
void scope_request_pack(Pack *p, const ScopeRequest *q, const PmuTable *pmus);
int scope_request_unpack(const Unpack *u, const PmuTable *pmus, ScopeRequest *ret);
